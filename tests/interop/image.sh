#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# image.sh DIR [6.1|6.12]...: builds what guest.sh boots, once: a Debian 12 userland (DIR/userland.squashfs)
# and, for each kernel, DIR/vmlinuz-KVER and DIR/initrd-KVER.img with that kernel's modules.
#
# Everything comes from Debian packages, with the apt sources of this machine. Nothing is installed on this
# machine; the kernel package is only unpacked. Files that the same scripts have built before are kept.
set -euo pipefail
prog=image.sh
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# The userland of the guest. The DPDK libraries are for endpoints that run inside it.
packages=(kmod iproute2 procps ethtool tcpdump libibverbs1 ibverbs-providers ibverbs-utils librdmacm1
	rdmacm-utils libisal2 libpcap0.8 libbsd0 libjansson4 libmnl0 libmicrohttpd12 libnuma1
	librte-bus-pci23 librte-bus-vdev23 librte-cfgfile23 librte-mempool-ring23 librte-net-af-packet23
	librte-net-af-xdp23 librte-net-e1000-23 librte-net-ring23 librte-net-virtio23 perftest qperf open-iscsi)
# Modules for the guest; their dependencies are added. Those of the first line are needed to mount the userland.
boot_modules=(virtio_pci virtio_blk virtio_console virtio_net virtio_rng squashfs overlay 9p 9pnet_virtio)
modules=(rdma_rxe crc32_generic crc32-pclmul ib_uverbs rdma_ucm ib_umad veth bridge tun 8021q vfio-pci sch_netem
	ib_iser sd_mod ib_isert crc32c_generic)

die()
{
	printf '%s: %s\n' "$prog" "$*" >&2
	exit 1
}

# quiet COMMAND...: writes the output to the log, and shows its end if the command fails.
quiet()
{
	"$@" >>"$dir/build.log" 2>&1 </dev/null || {
		tail -n 15 "$dir/build.log" >&2
		die "$1 failed; the log is $dir/build.log"
	}
}

need_tools()
{
	local tool
	for tool in mmdebstrap mksquashfs cpio busybox depmod modprobe; do
		command -v "$tool" >/dev/null || die "$tool is missing: install the packages of scripts/packages.txt"
	done
}

# Debian's own entries of this machine's apt sources, one per line, without those of other vendors.
debian_sources()
{
	# shellcheck disable=SC2016
	apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' 'Origin: Debian'
}

userland()
{
	local tree=$dir/userland include
	include=$(IFS=, && echo "${packages[*]}")
	debian_sources >"$dir/sources.list"
	[ -s "$dir/sources.list" ] || { quiet apt-get -q update && debian_sources >"$dir/sources.list"; }
	[ -s "$dir/sources.list" ] || die "apt has no Debian sources here"
	apt-config dump | grep '^Acquire' >"$dir/apt.conf" || :
	rm -rf "$tree"
	quiet mmdebstrap --variant=minbase --format=directory --include="$include" \
		--keyring=/usr/share/keyrings/debian-archive-keyring.gpg \
		--aptopt="$dir/apt.conf" bookworm "$tree" "$dir/sources.list"
	rm -rf "$tree"/usr/share/{doc,man,locale} "$tree"/var/{cache,lib}/apt/*
	mkdir -p "$tree"/mnt/{control,share}
	install -m 755 "$here/guest/init" "$tree/sbin/guest-init"
	install -m 755 "$here"/guest/iser-* "$tree/usr/sbin"
	rm -f "$dir/userland.squashfs"
	quiet mksquashfs "$tree" "$dir/userland.squashfs.new" -noI -noD -noF -noX -no-progress -all-root
	mv "$dir/userland.squashfs.new" "$dir/userland.squashfs"
	rm -rf "$tree"
}

# kernel_package KVER: the name of the newest image of that series.
kernel_package()
{
	local meta=linux-image-amd64
	[ "$1" = 6.1 ] || meta=linux-image-$1-amd64
	apt-cache depends "$meta" 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1
}

# fetch_kernel KVER: unpacks it into $work/kernel.
fetch_kernel()
{
	local package
	package=$(kernel_package "$1")
	[ -n "$package" ] || { quiet apt-get -q update && package=$(kernel_package "$1"); }
	[ -n "$package" ] || die "Debian's sources here have no kernel $1 (bookworm and bookworm-security have)"
	(cd "$work" && quiet apt-get -q download "$package")
	quiet dpkg -x "$work/${package}"_*.deb "$work/kernel"
}

# insmod_order MODULE...: the files to load, in order, each once.
insmod_order()
{
	local m
	for m; do
		modprobe -d "$work/kernel" -S "$release" --show-depends "$m" ||
			die "kernel $release has no module $m"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

kernel()
{
	local kver=$1 tree file order
	work=$(mktemp -d "$dir/kernel.XXXXXX")
	chmod 755 "$work"
	fetch_kernel "$kver"
	release=$(basename "$work"/kernel/boot/vmlinuz-*)
	release=${release#vmlinuz-}
	find "$work/kernel/lib/modules" -name '*.ko.xz' -exec xz -d {} +
	find "$work/kernel/lib/modules" -name '*.ko.zst' -exec zstd -q -d --rm {} +
	quiet depmod -b "$work/kernel" "$release"
	tree=$work/initrd
	mkdir -p "$tree"/{bin,dev,proc,sys,mnt}
	cp "$(command -v busybox)" "$tree/bin/busybox"
	ln -s busybox "$tree/bin/sh"
	install -m 755 "$here/guest/initramfs" "$tree/init"
	insmod_order "${boot_modules[@]}" "${modules[@]}" | while read -r file; do
		install -D -m 644 "$file" "$tree/${file#"$work/kernel/"}"
	done
	cp "$work/kernel/lib/modules/$release"/modules.{builtin,builtin.modinfo,order} \
		"$tree/lib/modules/$release/"
	quiet depmod -b "$tree" "$release"
	order=$(insmod_order "${boot_modules[@]}")
	printf '%s\n' "${order//"$work/kernel"/}" >"$tree/modules.boot"
	(cd "$tree" && find . | cpio -o -H newc --quiet) >"$dir/initrd-$kver.img.new"
	cp "$work/kernel/boot/vmlinuz-$release" "$dir/vmlinuz-$kver"
	mv "$dir/initrd-$kver.img.new" "$dir/initrd-$kver.img"
	rm -rf "$work"
}

# If these scripts change, everything is built again.
made_by()
{
	cat "$here/image.sh" "$here"/guest/* | sha256sum | cut -c1-16
}

[ $# -ge 1 ] || die "usage: image.sh DIR [6.1|6.12]..."
mkdir -p "$1"
dir=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- 6.1
[ "$(id -u)" -eq 0 ] || die "needs root to make a Debian userland"
need_tools
exec 9>"$dir/lock"
flock 9
rm -rf "$dir"/kernel.* "$dir"/userland # of one that was killed
if [ "$(cat "$dir/made-by" 2>/dev/null)" != "$(made_by)" ]; then
	rm -f "$dir"/userland.squashfs "$dir"/vmlinuz-* "$dir"/initrd-*
	: >"$dir/build.log"
	made_by >"$dir/made-by"
fi
[ -s "$dir/userland.squashfs" ] || userland
for kver; do
	[ -s "$dir/initrd-$kver.img" ] || kernel "$kver"
done
