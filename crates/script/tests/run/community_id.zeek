# Community IDs: equal addresses, ICMP types without a reply, SCTP, protocol numbers.
type conn_id: record {
	orig_h: addr;
	orig_p: port;
	resp_h: addr;
	resp_p: port;
	proto: count &default=65535;
};
global community_id_v1: function(cid: conn_id, seed: count &default=0, do_base64: bool &default=T): string;

function id_of(from: port, to: port, proto: count, host: addr): string
	{
	return community_id_v1(conn_id($orig_h=10.0.0.1, $orig_p=from, $resp_h=host, $resp_p=to, $proto=proto));
	}

event zeek_done() { print id_of(1/tcp, 256/tcp, 6, 10.0.0.1); print id_of(256/tcp, 1/tcp, 6, 10.0.0.1); }
event zeek_done() { print id_of(8/icmp, 5/icmp, 1, 10.0.0.2); print id_of(8/icmp, 0/icmp, 1, 10.0.0.2); }
event zeek_done() { print id_of(37/icmp, 5/icmp, 1, 10.0.0.2); print id_of(5/icmp, 37/icmp, 1, 10.0.0.1); }
event zeek_done() { print id_of(3/unknown, 4/unknown, 132, 10.0.0.2); print id_of(3/unknown, 4/unknown, 300, 10.0.0.2); }
event zeek_done() { print id_of(3/unknown, 4/unknown, 65535, 10.0.0.2) == ""; }
#> 1:DUkRcZzbksGuE8pA3aiaG3ISjSM=
#> 1:DUkRcZzbksGuE8pA3aiaG3ISjSM=
#> 1:BFRKajGOxpctVgrJyK8nxmehUa8=
#> 1:YcMyyWJfhc95EW1GfXt6jlZ3DiQ=
#> 1:8DKT+HlqUwupKEktNYqTqkHw5KY=
#> 1:2j0XGIsajbhlQG1gORwSznVaayU=
#> 1:n+Mmm1noeVA703JwvrafifCuNgI=
#> 1:5k98vc9cBdP7BVmBPEQjZJ/gDwE=
#> T
#! error in tests/run/community_id.zeek, line 13: CommunityID: unknown transport layer (community_id_v1(conn_id($orig_h=10.0.0.1, $orig_p=from, $resp_h=host, $resp_p=to, $proto=proto), 0, T) and [orig_h=10.0.0.1, orig_p=3/unknown, resp_h=10.0.0.2, resp_p=4/unknown, proto=65535])
