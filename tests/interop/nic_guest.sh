#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs in the guest of tests/interop/nic: binds two PCI network devices to vfio-pci, with an endpoint on each.
#
#   eth0, rxe0 10.77.0.2      0000:00:10.0 uroce 10.77.0.11      0000:00:11.0 uroce 10.77.0.12
nic=$1
share=/mnt/share
export LD_LIBRARY_PATH=$share # liburoce.so.0
mkdir -p /run/nic && cd /run/nic || exit 1

# step NAME COMMAND...
step()
{
	local name=$1
	shift
	if "$@" >step.log 2>&1 </dev/null; then
		echo "ok $nic.$name"
	else
		echo "FAILED $nic.$name: $(tail -n 1 step.log)"
		cat step.log
	fi
}

bind()
{
	local device path
	modprobe vfio-pci || return 1
	for device in 0000:00:10.0 0000:00:11.0; do
		path=/sys/bus/pci/devices/$device
		[ ! -e $path/driver ] || echo $device >$path/driver/unbind
		echo vfio-pci >$path/driver_override
		echo $device >/sys/bus/pci/drivers_probe
		[ "$(basename "$(readlink $path/driver)")" = vfio-pci ] || {
			echo "$device is not vfio-pci's"
			return 1
		}
	done
}

hugepages()
{
	mkdir -p /dev/hugepages && mount -t hugetlbfs none /dev/hugepages
	echo 300 >/proc/sys/vm/nr_hugepages
	[ "$(cat /proc/sys/vm/nr_hugepages)" -eq 300 ]
}

options=(--config $share/nic.conf --set eal.memory_mb=256 --set eal.hugepages=yes --set port.mtu=4200)
first=("${options[@]}" --set port.device=0000:00:10.0 --set address.ipv4=10.77.0.11/24)
second=("${options[@]}" --set port.device=0000:00:11.0 --set address.ipv4=10.77.0.12/24)

listening()
{
	local i
	for ((i = 0; i < 300; i++)); do
		! grep -q listening server.log || return 0
		sleep 0.1
	done
	cat server.log
	return 1
}

# Messages of several packets, every byte compared.
perf()
{
	timeout 100 $share/uroce-perf client "${second[@]}" --peer 10.77.0.11 --timeout 20 --verify --iters 100 "$@"
}

# rxe SCENARIO...: lines of spec.h; the programs talk TCP over the loopback interface.
rxe()
{
	printf '%s\n' "$@" | timeout 200 $share/interop-uroce run --peer 127.0.0.1:7471 "${first[@]}" >rxe.log 2>&1
	local status=$?
	cat rxe.log
	return $status
}

step bind bind
step hugepages hugepages
$share/uroce-perf server "${first[@]}" >server.log 2>&1 </dev/null &
server=$!
step open listening
for op in write read send; do
	step "uroce.$op" perf --op $op --size 20000
done
step uroce.mixed perf --op mixed --size 9000
step uroce.gbn perf --op mixed --size 9000 --transport-mode gbn
kill -INT $server
wait $server
$share/interop-rxe serve 7471 >rxe-server.log 2>&1 </dev/null &
step rxe.rc rxe "rc ops=send,send_imm,write,write_imm,read,cas,fadd sizes=0,1,1024,5000,70000 mtu=4096" \
	"rc-passive from=rxe ops=send,send_imm,write,write_imm,read,cas,fadd sizes=0,1,1024,5000,70000 mtu=4096"
step rxe.ud rxe "ud service=ud ops=send,send_imm sizes=1,64,1024" "uc service=uc ops=send,write,write_imm sizes=1,64,5000"
echo over
