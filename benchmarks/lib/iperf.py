# SPDX-License-Identifier: BSD-3-Clause
"""The rival: the kernel's TCP over the same veth pair. iperf3 measures the bandwidth of one stream,
sockperf the half round trip of a ping-pong."""

import json
import re

from .host import Failure
from .netns import TCP_ADDRESSES

PERCENTILE = re.compile(r"percentile\s+(\d+\.\d+)\s*=\s*(\d+\.\d+)")
RATE = re.compile(r"Message Rate is (\d+)")


def one_stream(host, pair, seconds):
    """Received Gb/s."""
    pair.tcp_on()
    server = host.start("iperf3-server", pair.inside(1) + ["iperf3", "-s", "-1", "--forceflush"],
                        host.cpu(1))
    try:
        server.wait_for("listening")
        client = host.start("iperf3-client", pair.inside(0) + [
            "iperf3", "-c", TCP_ADDRESSES[1], "-t", str(max(1, round(seconds))), "-J"], host.cpu(0))
        client.wait(seconds + 20)
        end = json.loads(client.text())["end"]
        return end["sum_received"]["bits_per_second"] / 1e9
    except (ValueError, KeyError):
        raise Failure(f"iperf3 gives no figure: {client.tail()}")
    finally:
        server.stop()
        pair.tcp_off()


def ping_pong(host, pair, seconds, size=14):
    """{"p50", "p99"} of half a round trip, us. 14 bytes is the smallest message of sockperf."""
    pair.tcp_on()
    address = ["-i", TCP_ADDRESSES[1], "-p", "11111", "--tcp"]
    server = host.start("sockperf-server", pair.inside(1) + ["sockperf", "server", *address],
                        host.cpu(1))
    try:
        server.wait_for("to block on socket")
        client = host.start("sockperf-client", pair.inside(0) + [
            "sockperf", "ping-pong", *address, "-t", str(max(1, round(seconds))), "-m", str(size)],
            host.cpu(0))
        client.wait(seconds + 20)
        found = {float(p): float(v) for p, v in PERCENTILE.findall(client.text())}
        if 50.0 not in found or 99.0 not in found:
            raise Failure(f"sockperf gives no figure: {client.tail()}")
        return {"p50": found[50.0], "p99": found[99.0]}
    finally:
        server.stop()
        pair.tcp_off()


def message_rate(host, pair, size, seconds):
    """Messages of `size` bytes per second through one TCP stream, each sent by its own call."""
    pair.tcp_on()
    address = ["-i", TCP_ADDRESSES[1], "-p", "11112", "--tcp"]
    server = host.start("sockperf-server", pair.inside(1) + ["sockperf", "server", *address],
                        host.cpu(1))
    try:
        server.wait_for("to block on socket")
        client = host.start("sockperf-client", pair.inside(0) + [
            "sockperf", "throughput", *address, "-t", str(max(1, round(seconds))), "-m", str(size),
            "--mps", "max"], host.cpu(0))
        client.wait(seconds + 20)
        found = RATE.search(client.text())
        if not found:
            raise Failure(f"sockperf gives no figure: {client.tail()}")
        return float(found[1])
    finally:
        server.stop()
        pair.tcp_off()
