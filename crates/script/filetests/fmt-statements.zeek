# stages: fmt tokens
module Test;
@load base/utils/site   # the sites
export { global f: function(a:count,b:string &default = "x") : bool;
  type R: record { a:count; b  : string &optional; };
  type Long: record {
      ## A field.
      name : string   &log;   ##< its name
                              ##< goes on
      n    : count    &log &default = 3;
  };
	redef enum Kind += { ONE,
		TWO };
}

const networks = {
10.0.0.0/8,   # private
   192.168.0.0/16,
};
function f(a:count,b:string &default = "x") : bool {
if(a>3&&|b|==0)return T;
else if ( !( a in networks ) ) { print a; }
else
print -a , b[1 : 2],[$x=1,$y = f( 1 )] ;
    # a comment
for(i in vector(1,2)) { next; }


# far



	while( T )
		if ( a == 1 )
		break;
		else
			{ a=a-1; ++a; }
switch ( a ) { case 1,2: return T; default: break; }
	local g = function(x: count): count { return x; };
	local h = function [a] (x: count): count {
		return x + a;
	};
	when [a] ( a > 3 ) { print a; } timeout 5 sec { print "x"; }
	return a > 3 ? T : /a|b\/c/ in b &&
	       |b| / 2 > 1;
}
@if ( T )
event e() { schedule 1 sec { e() }; }
@else
event e2()
@endif
@ifdef ( Nope )
	{
	}
@endif
