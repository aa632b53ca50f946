#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The Debian packages, on a release of Debian or Ubuntu: builds them there, has lintian look at them, installs them in a clean chroot,
# compiles and runs the examples there, and runs the release's own programs over uroce.
set -u
prog=deb
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
suite=bookworm
install=yes

usage()
{
	cat <<'END'
Usage: sudo tests/deb.sh [--suite bookworm|trixie|noble] [--no-install]

Builds the packages of debian/ in a chroot of Debian 12 (bookworm, the default), Debian 13 (trixie) or Ubuntu 24.04
(noble), with dpkg-buildpackage; no warning of the compiler is permitted, and lintian must find nothing. Installs them with
apt in another chroot, which has nothing else; compiles and runs the examples there with
cc $(pkg-config --cflags --libs uroce); compares the names and versions of the release's libibverbs and librdmacm with
uroce's; and runs the release's own RDMA programs with uroce-run and uroced. Leaves results/deb/SUITE/ with the packages,
the log, and the outcomes of the programs.

Debian's packages come from the mirrors that this machine's apt uses, Ubuntu's from where mmdebstrap finds them. Without
a way to Ubuntu's, the test is skipped (exit status 77). What it needs beyond scripts/packages.txt it installs, unless
--no-install.
END
}

while [ $# -gt 0 ]; do
	case $1 in
	--suite)
		suite=${2:-}
		shift
		;;
	--no-install) install=no ;;
	*)
		usage
		exit 2
		;;
	esac
	shift
done
case $suite in
bookworm) release="Debian 12" ;;
trixie) release="Debian 13" ;;
noble) release="Ubuntu 24.04" ;;
*)
	usage
	exit 2
	;;
esac
out=$root/results/deb/$suite
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
trap 'rm -rf --one-file-system "$tmp"; give_back "$root/results/deb"' EXIT
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
	[ "$(dpkg-query -W -f '${Status}' mmdebstrap 2>/dev/null)" = 'install ok installed' ] && return
	[ $install = yes ] || die "the package mmdebstrap is missing"
	export DEBIAN_FRONTEND=noninteractive
	apt_update
	run apt-get -q install -y --no-install-recommends mmdebstrap
}

# Debian's own entries among this machine's apt sources, one a line.
own_sources()
{
	# shellcheck disable=SC2016
	apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian'
}

# debian_sources SUITE: the same for another release.
debian_sources()
{
	local own
	[ -n "$(own_sources)" ] || apt_update >&2
	[ -n "$(own_sources)" ] || die "apt has no Debian sources here"
	own=$(. /etc/os-release && echo "$VERSION_CODENAME")
	own_sources | sed -E "s/ $own([^ ]*) / $1\1 /"
}

# debian_chroot SUITE DIR
debian_chroot()
{
	debian_sources "$1" >"$tmp/sources.list" || exit 1
	run mmdebstrap --variant=minbase --format=directory --keyring=/usr/share/keyrings/debian-archive-keyring.gpg \
		--aptopt="$tmp/apt.conf" "$1" "$2" "$tmp/sources.list"
}

# Debian vouches for Ubuntu's keys: its unstable distribution has a package of them.
ubuntu_keyring()
{
	local options="-o Dir::Etc::SourceList=$tmp/unstable.list -o Dir::Etc::SourceParts=/dev/null
		-o Dir::State::Lists=$tmp/unstable/lists -o Dir::Cache=$tmp/unstable/cache"
	debian_sources sid >"$tmp/sources.list" || exit 1
	grep ' sid ' "$tmp/sources.list" >"$tmp/unstable.list" || die "apt has no Debian archive here"
	mkdir -p "$tmp"/unstable/{lists,cache/archives}/partial
	# shellcheck disable=SC2086
	run apt-get -q $options update
	# shellcheck disable=SC2086
	(cd "$tmp/unstable" && run apt-get -q $options download ubuntu-keyring) || exit 1
	run dpkg-deb -x "$tmp"/unstable/ubuntu-keyring_*.deb "$tmp/keys"
}

# ubuntu_chroot SUITE DIR
ubuntu_chroot()
{
	ubuntu_keyring
	logged mmdebstrap --variant=minbase --include=apt --format=directory --components=main,universe --aptopt="$tmp/apt.conf" \
		--keyring="$tmp/keys/usr/share/keyrings/ubuntu-archive-keyring.gpg" "$1" "$2" && return
	grep '^[WE]: ' "$log" | tail -n 3
	grep -qE '^[WE]: .*(Failed to fetch|Could not resolve|Cannot initiate the connection)' "$log" || die "mmdebstrap failed"
	say "skipped: no way to Ubuntu's packages"
	exit 77
}

# inside DIR COMMAND...: in a mount namespace of its own, which takes the mounts with it when it ends. Its root is a mount, as `ip` wants.
inside()
{
	run unshare --mount --propagation private sh -eu -c '
		mount --bind "$1" "$1"; cd "$1"; shift
		mount -t proc proc proc; mount --rbind /sys sys; mount --rbind /dev dev
		cp -L /etc/resolv.conf etc/resolv.conf
		exec chroot . env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive HOME=/root LC_ALL=C.UTF-8 "$@"
		' sh "$@"
}

# The source as it is in the tree, without what was built in it.
build()
{
	cp -a "$tmp/clean" "$tmp/builder" && mkdir -p "$tmp/builder/build/uroce" || exit 1
	tar -C "$root" -c --exclude='./build*' --exclude=./results --exclude=./.git --exclude='*.pcap' . |
		tar -C "$tmp/builder/build/uroce" -x || die "cannot copy the source"
	inside "$tmp/builder" sh -c 'apt-get -q update && apt-get -q install -y --no-install-recommends build-essential lintian &&
		cd /build/uroce && apt-get -q build-dep -y --no-install-recommends ./'
	inside "$tmp/builder" sh -c 'cd /build/uroce && DEB_CFLAGS_APPEND=-Werror dpkg-buildpackage -us -uc'
	cp "$tmp"/builder/build/*.{deb,changes,dsc} "$out" || exit 1
}

# What programs need to run in the chroot, as the tree has it.
copy_tests()
{
	mkdir -p "$tmp"/clean/uroce/{docs,debs} || exit 1
	cp "$out"/*.deb "$tmp/clean/uroce/debs"
	cp "$root/docs/programs.md" "$tmp/clean/uroce/docs"
	tar -C "$root" -c tests/examples.sh tests/deb_programs.sh tests/tools/verbs_abi.sh tests/programs tests/interop/guest_command.py |
		tar -C "$tmp/clean/uroce" -x || die "cannot copy the tests"
}

started=$(date +%s)
tools
say "a clean $release"
apt-config dump | grep '^Acquire' >"$tmp/apt.conf" || :
case $suite in
noble) ubuntu_chroot "$suite" "$tmp/clean" ;;
*) debian_chroot "$suite" "$tmp/clean" ;;
esac
say "building the packages"
build
say "lintian"
# The packages follow the policy of Debian 12: that of a later release is newer, and its lintian may have dropped a tag that is overridden;
# Ubuntu's does not know the distribution of debian/changelog.
[ $suite = bookworm ] || later="--suppress-tags alien-tag,bad-distribution-in-changes-file,out-of-date-standards-version"
inside "$tmp/builder" sh -c "lintian --allow-root --fail-on error,warning,info --display-info --tag-display-limit 0 ${later:-} /build/*.changes"
rm -rf --one-file-system "$tmp/builder"
copy_tests
say "apt install ./*.deb"
inside "$tmp/clean" sh -c 'apt-get -q update && cd /uroce/debs && apt-get -q install -y --no-install-recommends ./*.deb'
inside "$tmp/clean" apt-get -q install -y --no-install-recommends gcc libc6-dev pkg-config
say "the examples"
inside "$tmp/clean" /uroce/tests/examples.sh /usr/share/doc/liburoce-dev/examples ""
inside "$tmp/clean" sh -c 'uroce-perf --help && uroce-pcap --help && uroce-switch --help && uroce-ctl --help && test -e /usr/share/man/man1/uroce-perf.1.gz &&
	test -e /usr/share/bash-completion/completions/uroce-perf'
say "unmodified programs"
inside "$tmp/clean" apt-get -q install -y --no-install-recommends ibverbs-utils iproute2 libfabric-bin perftest python3 qperf rdmacm-utils ucx-utils
inside "$tmp/clean" /uroce/tests/deb_programs.sh "$suite"
cp "$tmp"/clean/uroce/*.json "$out"
grep -E '^[0-9]+ (names|ok)| runs$' "$log"
say "$(($(date +%s) - started)) s; the packages are in $out"
