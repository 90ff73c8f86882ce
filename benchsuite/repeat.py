#!/usr/bin/env python3
"""Repeat a classic pcap file N times, each copy later than the previous one.

usage: repeat.py IN OUT N

Used to check that memory does not grow with the length of a trace: all copies have the same
addresses, so the connections of one copy must be removed before the next copy begins.
"""
import struct
import sys


def main():
    source, target, copies = sys.argv[1], sys.argv[2], int(sys.argv[3])
    data = open(source, 'rb').read()
    order = {b'\xd4\xc3\xb2\xa1': '<', b'\xa1\xb2\xc3\xd4': '>'}.get(data[:4])
    if order is None:
        sys.exit(f'{source}: not a pcap file with microseconds')
    records, at, last, first = [], 24, 0, None
    while at + 16 <= len(data):
        seconds, _, captured, _ = struct.unpack_from(order + 'IIII', data, at)
        records.append(at)
        first = seconds if first is None else min(first, seconds)
        last = max(last, seconds)
        at += 16 + captured
    span = last - first + 1
    with open(target, 'wb') as out:
        out.write(data[:24])
        body = bytearray(data[24:at])
        for copy in range(copies):
            if copy:
                for record in records:
                    where = record - 24
                    seconds, = struct.unpack_from(order + 'I', body, where)
                    struct.pack_into(order + 'I', body, where, seconds + span)
            out.write(body)


main()
