//! Where a packet belongs: to the hub, or to the part that owns its pair of hosts.

use gannet_base::ConnId;
use gannet_base::Proto;
use gannet_flow::Key;
use gannet_protocols::hub;
use gannet_wire::Ip;

use crate::shard::Shard;

impl Shard {
    /// Whether a packet's connection is of the [hub](gannet_protocols::hub): by its ports, by what
    /// a datagram holds, or because it was announced there. The answer depends on this packet and
    /// on the hub alone.
    #[inline]
    pub(crate) fn is_of_hub(
        &self,
        id: &ConnId,
        ip: &Ip<'_>,
        proto: Proto,
        datagram: &[u8],
    ) -> bool {
        let by_port = self.env.hub_ports.may_have(proto, id.orig_p, id.resp_p);
        if proto == Proto::Udp && hub::may_be_by_content(datagram) && hub::is_by_content(datagram) {
            return true;
        }
        by_port && self.is_hubs_own(id, ip, proto)
    }

    fn is_hubs_own(&self, id: &ConnId, ip: &Ip<'_>, proto: Proto) -> bool {
        let announced = |id| self.env.expected_for(id, proto, true, self.now).is_some();
        let key = Key::new(id, ip.protocol, false).of_hub(true);
        hub::is_by_port(proto, id.orig_p, id.resp_p)
            || self.table.find(self.table.hash(&key), &key).is_some()
            || announced(id)
            || announced(&id.flipped())
    }
}
