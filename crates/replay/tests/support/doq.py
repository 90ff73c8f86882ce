"""DNS over QUIC by aioquic, an independent implementation.

doq.py serve PORT CERTIFICATE KEY COUNTS: answers every query with a copy of it, and writes the numbers of
queries and connections to a file. doq.py ask PORT AUTHORITY QUERIES: sends queries, and prints the number of
correct answers.
"""

import asyncio
import struct
import sys

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import HandshakeCompleted, StreamDataReceived

seen = {"queries": 0, "connections": 0, "resumed": 0}


class Server(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.parts = {}

    def quic_event_received(self, event):
        if isinstance(event, HandshakeCompleted):
            seen["connections"] += 1
            seen["resumed"] += event.session_resumed
        elif isinstance(event, StreamDataReceived):
            data = self.parts.pop(event.stream_id, b"") + event.data
            if not event.end_stream:
                self.parts[event.stream_id] = data
                return
            (length,) = struct.unpack_from("!H", data)
            query = bytearray(data[2:])
            assert length == len(query) and query[:2] == b"\0\0" and not query[2] & 0x80
            query[2] |= 0x80
            seen["queries"] += 1
            self._quic.send_stream_data(event.stream_id, data[:2] + query, end_stream=True)
            self.transmit()


async def run_server(port, certificate, key, counts):
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["doq"])
    configuration.load_cert_chain(certificate, key)
    tickets = {}
    await serve(
        "127.0.0.1",
        port,
        configuration=configuration,
        create_protocol=Server,
        session_ticket_handler=lambda ticket: tickets.update({ticket.ticket: ticket}),
        session_ticket_fetcher=lambda label: tickets.pop(label, None),
    )
    # The test connects to this port to detect that the server has started.
    await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", port)
    while True:
        with open(counts, "w") as file:
            file.write("{queries} {connections} {resumed}".format(**seen))
        await asyncio.sleep(0.05)


class Client(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.answers = {}
        self.parts = {}

    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived):
            data = self.parts.pop(event.stream_id, b"") + event.data
            if event.end_stream:
                self.answers.pop(event.stream_id).set_result(data)
            else:
                self.parts[event.stream_id] = data

    def ask(self, query):
        stream = self._quic.get_next_available_stream_id()
        self.answers[stream] = asyncio.get_running_loop().create_future()
        framed = struct.pack("!H", len(query)) + query
        self._quic.send_stream_data(stream, framed, end_stream=True)
        return self.answers[stream]


async def run_client(port, authority, queries):
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["doq"])
    configuration.load_verify_locations(authority)
    configuration.server_name = "127.0.0.1"
    right = 0
    async with connect(
        "127.0.0.1", port, configuration=configuration, create_protocol=Client
    ) as client:
        for first in range(0, queries, 50):
            asked = []
            for number in range(first, min(first + 50, queries)):
                name = b"q%d" % number
                query = b"\0\0\1\0\0\1\0\0\0\0\0\0" + bytes([len(name)]) + name + b"\0\0\1\0\1"
                asked.append((query, client.ask(query)))
            client.transmit()
            for query, answer in asked:
                data = await asyncio.wait_for(answer, 5)
                expected = query[:2] + bytes([query[2] | 0x80]) + query[3:]
                right += data == struct.pack("!H", len(query)) + expected
    print(right)


if sys.argv[1] == "serve":
    asyncio.run(run_server(int(sys.argv[2]), *sys.argv[3:6]))
else:
    asyncio.run(run_client(int(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
