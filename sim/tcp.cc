/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ns3-tcp: what uroce-ns3's speed is compared with. ns-3's own TCP between two hosts of a point-to-point link, as in its example
 * tcp-bulk-send, at 10 Gb/s; with its own event scheduler. Prints one object of JSON.
 *
 *   ns3-tcp [MILLISECONDS]      of virtual time, default 50
 */
#include <sys/resource.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include <ns3/bulk-send-helper.h>
#include <ns3/config.h>
#include <ns3/internet-stack-helper.h>
#include <ns3/ipv4-address-helper.h>
#include <ns3/node-container.h>
#include <ns3/packet-sink-helper.h>
#include <ns3/packet-sink.h>
#include <ns3/point-to-point-helper.h>
#include <ns3/simulator.h>
#include <ns3/string.h>
#include <ns3/uinteger.h>

namespace
{

double cpu_seconds()
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

} // namespace

int main(int argc, char **argv)
{
	uint64_t ms = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 50;
	constexpr uint16_t PORT = 9;
	constexpr uint32_t SEGMENT = 1448;
	ns3::PointToPointHelper link;
	ns3::InternetStackHelper stack;
	ns3::Ipv4AddressHelper addresses;
	ns3::NodeContainer nodes;

	if (!ms || ms > 100000) {
		std::fprintf(stderr, "usage: ns3-tcp [MILLISECONDS], 1 to 100000\n");
		return 2;
	}
	ns3::Config::SetDefault("ns3::TcpSocket::SegmentSize", ns3::UintegerValue(SEGMENT));
	nodes.Create(2);
	link.SetDeviceAttribute("DataRate", ns3::StringValue("10Gbps"));
	link.SetChannelAttribute("Delay", ns3::StringValue("10us"));
	ns3::NetDeviceContainer devices = link.Install(nodes);
	stack.Install(nodes);
	addresses.SetBase("10.1.1.0", "255.255.255.0");
	ns3::Ipv4InterfaceContainer interfaces = addresses.Assign(devices);

	ns3::BulkSendHelper source("ns3::TcpSocketFactory",
				   ns3::InetSocketAddress(interfaces.GetAddress(1), PORT));
	ns3::PacketSinkHelper sink("ns3::TcpSocketFactory",
				   ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), PORT));

	source.SetAttribute("MaxBytes", ns3::UintegerValue(0));
	source.Install(nodes.Get(0)).Start(ns3::Seconds(0));
	ns3::ApplicationContainer sinks = sink.Install(nodes.Get(1));
	sinks.Start(ns3::Seconds(0));
	ns3::Simulator::Stop(ns3::MilliSeconds(ms));
	double begin = cpu_seconds();

	ns3::Simulator::Run();
	double seconds = cpu_seconds() - begin;
	uint64_t bytes = ns3::DynamicCast<ns3::PacketSink>(sinks.Get(0))->GetTotalRx();

	std::printf("{\"events\": %" PRIu64 ", \"cpu_seconds\": %.3f, \"bytes\": %" PRIu64
		    ", \"packets\": %" PRIu64 ", \"gbps\": %.3f}\n",
		    ns3::Simulator::GetEventCount(), seconds, bytes, bytes / SEGMENT,
		    static_cast<double>(bytes) * 8 / (static_cast<double>(ms) * 1e6));
	ns3::Simulator::Destroy();
	return 0;
}
