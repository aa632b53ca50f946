# SPDX-License-Identifier: BSD-3-Clause
# Sourced (bash): a Debian guest with the kernel's own RoCEv2, rdma_rxe, under qemu, whose one interface is
# a tap bridged with uroce1, the far end of the veth pair of scripts/netns.sh. uroce's endpoint has uroce0.
# There is no KVM: the guest is emulated, boots in 8 to 15 s and is slow.
#
#   namespace a: uroce0 == veth == uroce1, bridge0, tap0 :namespace b == virtio-net: eth0, rxe0 in the guest
#
# `image` is the directory that image.sh has filled. Everything runs in the two namespaces, so that the remains
# of a killed script are removed with them.
# shellcheck shell=bash disable=SC2154,SC2034

guest_mac=52:54:00:77:00:02
guest_ip4=10.77.0.2/24
guest_ip6=fd77::2/64
guest_mtu=4300
# The kernel's address in namespace a, for TCP to the guest. 10.77.0.1 and all IPv6 addresses belong to uroce.
kernel_ip4=10.77.0.9/24
guest_pid=
guest_control=

# join_guest_network: call this after make_netns.
join_guest_network()
{
	"${in_b[@]}" ip link add bridge0 type bridge mcast_snooping 0 &&
		"${in_b[@]}" ip tuntap add dev tap0 mode tap &&
		"${in_b[@]}" ip link set uroce1 master bridge0 &&
		"${in_b[@]}" ip link set tap0 mtu $guest_mtu master bridge0 up &&
		"${in_b[@]}" ip link set bridge0 mtu $guest_mtu up &&
		"${in_a[@]}" ip addr add $kernel_ip4 dev uroce0
}

# A virtio NIC of qemu with frames as on a wire: complete checksums, at most one MTU.
virtio_nic()
{
	local nic=virtio-net-pci,host_mtu=9000,romfile=,mrg_rxbuf=on f
	for f in csum gso guest_csum guest_tso4 guest_tso6 guest_ecn guest_ufo host_tso4 host_tso6 host_ecn \
		host_ufo; do
		nic+=,$f=off
	done
	echo "$nic"
}

# boot_guest KVER SHARE COMMAND...: in the background; SHARE is /mnt/share in the guest. What the command
# says goes to $tmp/guest.log, the kernel's console to $tmp/console.log. Instead of the interface at the tap
# the guest has what guest_devices says, on the machine of guest_machine, if these are set; guest_append
# is for its kernel's command line, guest_cpu its CPU.
boot_guest()
{
	local kver=$1 share=$2 devices machine
	shift 2
	devices=(-netdev tap,id=n0,ifname=tap0,script=no,downscript=no,vhost=off
		-device "$(virtio_nic),netdev=n0,mac=$guest_mac")
	[ -z "${guest_devices:-}" ] || devices=("${guest_devices[@]}")
	machine=(-machine "pc,usb=off,vmport=off")
	[ -z "${guest_machine:-}" ] || machine=("${guest_machine[@]}")
	guest_control=$(mktemp -d "$tmp/control.XXXXXX")
	printf '%s\n' "$*" >"$guest_control/command"
	printf '%s\n' "GUEST_IP4=$guest_ip4" "GUEST_IP6=$guest_ip6" "GUEST_MTU=$guest_mtu" \
		"GUEST_RXE=${guest_rxe:-yes}" >"$guest_control/settings"
	"${in_b[@]}" qemu-system-x86_64 "${machine[@]}" -accel tcg,thread=multi,tb-size=512 \
		-cpu "${guest_cpu:-max}" -smp 2 -m "${guest_mb:-1536}" \
		-nodefaults -no-user-config -display none -no-reboot \
		-kernel "$image/vmlinuz-$kver" -initrd "$image/initrd-$kver.img" \
		-append "console=ttyS0 quiet loglevel=4 panic=-1 clocksource=acpi_pm \
mitigations=off random.trust_cpu=on no_timer_check nowatchdog rcupdate.rcu_cpu_stall_suppress=1 ${guest_append:-}" \
		-serial "file:$tmp/console.log" \
		-drive "file=$image/userland.squashfs,if=none,id=d0,format=raw,readonly=on" \
		-device virtio-blk-pci,drive=d0 -device virtio-rng-pci \
		-device virtio-serial-pci -chardev "file,id=c0,path=$tmp/guest.log" -device virtconsole,chardev=c0 \
		-fsdev "local,id=f0,path=$guest_control,security_model=none" \
		-device virtio-9p-pci,fsdev=f0,mount_tag=control \
		-fsdev "local,id=f1,path=$share,security_model=none,readonly=on" \
		-device virtio-9p-pci,fsdev=f1,mount_tag=share \
		"${devices[@]}" \
		>"$tmp/qemu.log" 2>&1 </dev/null &
	guest_pid=$!
}

# wait_guest SECONDS: waits until its command starts; returns 1 if it does not.
wait_guest()
{
	local end=$((SECONDS + $1))
	until [ -s "$guest_control/ready" ]; do
		if [ $SECONDS -ge $end ] || ! kill -0 "$guest_pid" 2>/dev/null; then
			return 1
		fi
		sleep 0.1
	done
}

end_guest()
{
	[ -n "$guest_pid" ] || return 0
	kill -KILL "$guest_pid" 2>/dev/null
	wait "$guest_pid" 2>/dev/null
	guest_pid=
}
