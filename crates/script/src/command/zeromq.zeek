# A Zeek with ZeroMQ declares these together with its backend's tag; here the tag always exists.
@ifndef ( Cluster::Backend::ZeroMQ::spawn_zmq_proxy_thread )
module Cluster::Backend::ZeroMQ;

export {
	global spawn_zmq_proxy_thread: function(): bool;
	global generate_keypair: function(): table[string] of string;
}
module GLOBAL;
@endif
