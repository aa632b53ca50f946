#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The Debian packages: builds them, has lintian look at them, installs them in a clean Debian 12, compiles and runs the examples
# there, and runs programs of Debian over uroce.
set -u
prog=deb
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

case ${1:-} in
--no-install) install=no ;;
'') install=yes ;;
*)
	cat <<'END'
Usage: sudo tests/deb.sh [--no-install]

Builds the packages of debian/ in a directory of its own, with dpkg-buildpackage; lintian must find nothing. Installs
them with apt in a new Debian 12 of the suites and mirrors that this machine's apt uses, compiles and runs the examples
there with cc $(pkg-config --cflags --libs uroce), and runs Debian's ibv_devinfo and ib_write_bw with uroce-run
and uroced. Leaves results/deb/ with the packages and the log. What it needs beyond scripts/packages.txt it installs,
unless --no-install.
END
	exit 2
	;;
esac
out=$root/results/deb
log=$out/deb.log
# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"

[ "$(id -u)" -eq 0 ] || {
	echo "$prog: needs root: packages are installed in a chroot" >&2
	exit 1
}
rm -rf "$out" && mkdir -p "$out" || exit 1
: >"$log"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf --one-file-system "$tmp"; give_back "$out"' EXIT
trap 'exit 1' INT TERM HUP

# run COMMAND...: what it says goes to the log; its end is shown if it fails.
run()
{
	logged "$@" || {
		tail -n 30 "$log"
		die "$1 failed"
	}
}

tools()
{
	local needed="debhelper dpkg-dev lintian mmdebstrap help2man" p missing=
	for p in $needed; do
		[ "$(dpkg-query -W -f '${Status}' "$p" 2>/dev/null)" = 'install ok installed' ] || missing+="$p "
	done
	[ -z "$missing" ] && return
	[ $install = yes ] || die "packages are missing: $missing"
	export DEBIAN_FRONTEND=noninteractive
	apt_update
	run apt-get -q install -y --no-install-recommends $missing
}

# The source as it is in the tree, without what was built in it.
build()
{
	mkdir "$tmp/uroce" || exit 1
	tar -C "$root" -c --exclude='./build*' --exclude=./results --exclude=./.git --exclude='*.pcap' . |
		tar -C "$tmp/uroce" -x || die "cannot copy the source"
	cd "$tmp/uroce" || exit 1
	run env -u CC -u CFLAGS dpkg-buildpackage -us -uc
	cp "$tmp"/*.deb "$tmp"/*.changes "$tmp"/*.dsc "$out"
	cd "$root" || exit 1
}

# Debian's own entries among this machine's apt sources, one a line.
debian_sources()
{
	# shellcheck disable=SC2016
	apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' 'Origin: Debian'
}

chroot_made()
{
	debian_sources >"$tmp/sources.list"
	[ -s "$tmp/sources.list" ] || { apt_update && debian_sources >"$tmp/sources.list"; }
	[ -s "$tmp/sources.list" ] || die "apt has no Debian sources here"
	apt-config dump | grep '^Acquire' >"$tmp/apt.conf" || :
	run mmdebstrap --variant=minbase --format=directory --keyring=/usr/share/keyrings/debian-archive-keyring.gpg \
		--aptopt="$tmp/apt.conf" bookworm "$tmp/chroot" "$tmp/sources.list"
}

# In a mount namespace of its own, which takes the mounts with it when it ends.
inside()
{
	run unshare --mount --propagation private sh -eu -c '
		cd "$1"; shift
		mount -t proc proc proc; mount --rbind /sys sys; mount --rbind /dev dev
		cp -L /etc/resolv.conf etc/resolv.conf
		exec chroot . env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive HOME=/root LC_ALL=C.UTF-8 "$@"
		' sh "$tmp/chroot" "$@"
}

started=$(date +%s)
tools
say "building the packages"
build
say "lintian"
run lintian --allow-root --fail-on error,warning,info --display-info --tag-display-limit 0 "$tmp"/*.changes
say "a clean Debian 12"
chroot_made
mkdir "$tmp/chroot/debs"
cp "$tmp"/*.deb "$tmp/chroot/debs"
cp "$root/tests/examples.sh" "$root/tests/deb_programs.sh" "$tmp/chroot/debs"
say "apt install ./*.deb"
inside sh -c 'apt-get -q update && cd /debs && apt-get -q install -y --no-install-recommends ./*.deb'
inside apt-get -q install -y --no-install-recommends gcc libc6-dev pkg-config
say "the examples"
inside /debs/examples.sh /usr/share/doc/liburoce-dev/examples ""
inside sh -c 'uroce-perf --help && uroce-pcap --help && uroce-switch --help && uroce-ctl --help && test -e /usr/share/man/man1/uroce-perf.1.gz &&
	test -e /usr/share/bash-completion/completions/uroce-perf'
say "unmodified programs"
inside apt-get -q install -y --no-install-recommends ibverbs-utils perftest
inside /debs/deb_programs.sh
grep -E ' runs$' "$log"
say "$(($(date +%s) - started)) s; the packages are in $out"
