//! Arguments of keywords that take something other than an identifier.

use super::{PRIMITIVE, Parser};
use crate::ast::{Primitive, Relation};
use crate::error::Problem;
use crate::keyword::Word;
use crate::lexer::Kind;

impl Parser<'_> {
    pub(super) fn protocol_key(
        &mut self,
        key: &'static str,
        proto: Option<&'static str>,
    ) -> Result<Primitive, Problem> {
        Ok(match key {
            "broadcast" => Primitive::Broadcast(proto),
            "multicast" => Primitive::Multicast(proto),
            "dir" => Primitive::WlanDir(self.value()?),
            "type" => {
                let of = self.value()?;
                let sub = self.take(Kind::Word(Word::Key("subtype")));
                Primitive::Wlan(Some(of), if sub { Some(self.value()?) } else { None })
            }
            _ => Primitive::Wlan(None, Some(self.name()?)),
        })
    }

    pub(super) fn key(&mut self, key: &'static str) -> Result<Primitive, Problem> {
        Ok(match key {
            "less" => Primitive::Less(self.number()?),
            "greater" => Primitive::Greater(self.number()?),
            "byte" => {
                let index = self.number()?;
                let Kind::Sign(op @ ("&" | "|" | "<" | ">" | "=")) = self.next() else {
                    self.at -= 1;
                    return Err(self.unexpected("one of '=', '<', '>', '&' and '|'"));
                };
                Primitive::Byte(index, op, self.number()?)
            }
            "ifindex" | "rnr" | "srnr" => Primitive::Tagged(key, Some(self.number()?)),
            "vlan" | "mpls" | "pppoes" | "geneve" | "vxlan" => {
                Primitive::Tagged(key, self.parenthesized()?)
            }
            "ifname" | "rset" | "action" => Primitive::Pflog(key, self.name()?),
            "reason" => Primitive::Pflog(key, self.value()?),
            "llc" => match self.peek() {
                Kind::Name(name) => {
                    self.at += 1;
                    Primitive::Llc(Some(name.to_owned()))
                }
                Kind::Word(Word::Key("rnr")) => {
                    self.at += 1;
                    Primitive::Llc(Some("rnr".to_owned()))
                }
                _ => Primitive::Llc(None),
            },
            "vpi" | "vci" | "sio" | "opc" | "dpc" | "sls" | "hsio" | "hopc" | "hdpc" | "hsls" => {
                self.field(key)?
            }
            "mask" | "len" => {
                self.at -= 1;
                return Err(self.unexpected(PRIMITIVE));
            }
            _ => Primitive::Key(key),
        })
    }

    /// An optional number, in any number of parentheses.
    fn parenthesized(&mut self) -> Result<Option<u32>, Problem> {
        let begin = self.at;
        while self.take(Kind::Sign("(")) {}
        let deep = self.at - begin;
        if deep == 0 && !matches!(self.peek(), Kind::Number(_)) {
            return Ok(None);
        }
        let number = self.number()?;
        for _ in 0..deep {
            self.need(")")?;
        }
        Ok(Some(number))
    }

    fn field(&mut self, key: &'static str) -> Result<Primitive, Problem> {
        if let Some(relation) = self.comparison() {
            return Ok(Primitive::Field(key, relation, vec![self.number()?]));
        }
        if !self.take(Kind::Sign("(")) {
            return Ok(Primitive::Field(key, Relation::Eq, vec![self.number()?]));
        }
        let mut values = vec![self.number()?];
        while self.take(Kind::Sign("or")) {
            values.push(self.number()?);
        }
        self.need(")")?;
        Ok(Primitive::Field(key, Relation::Eq, values))
    }
}
