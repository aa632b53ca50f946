# SPDX-License-Identifier: BSD-3-Clause
# Sourced by quickstart and check (bash): messages, installation, build.
# The caller sets `prog` (its name), `root` (the source tree) and `log` (where output goes).
# shellcheck shell=bash disable=SC2154

# Tools for root may not be on the user's path.
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

say()
{
	printf '== %s\n' "$*"
}

# die SENTENCE: prints the sentence and the path of the log, and exits with status 1.
die()
{
	printf '%s: %s\n' "$prog" "$*" >&2
	[ ! -s "$log" ] || printf '%s: the log is %s\n' "$prog" "$log" >&2
	exit 1
}

# logged COMMAND...: runs the command with its output in the log only.
logged()
{
	printf '\n$ %s\n' "$*" >>"$log"
	"$@" >>"$log" 2>&1 </dev/null
}

packages()
{
	sed "/# not for $prog\$/d; s/#.*//" "$root/scripts/packages.txt"
}

missing_packages()
{
	local p
	for p in $(packages); do
		[ "$(dpkg-query -W -f '${Status}' "$p" 2>/dev/null)" = 'install ok installed' ] ||
			printf '%s ' "$p"
	done
}

# A new container has no package lists, and a mirror may fail for a moment. A list that cannot be fetched
# may not be needed.
apt_update()
{
	local try
	for try in 1 2 3; do
		logged apt-get -q -o APT::Update::Error-Mode=any update && return 0
		sleep $((try * 3))
	done
	say "apt-get update failed three times, at least in part: continuing with the existing lists"
}

# apt_install PACKAGES
apt_install()
{
	# shellcheck disable=SC2086
	logged apt-get -q install -y --no-install-recommends -o DPkg::Lock::Timeout=120 $1
}

install_packages()
{
	local missing
	command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
		die "this is not Debian: install the packages of scripts/packages.txt, then use --no-install"
	missing=$(missing_packages)
	[ -n "$missing" ] || return 0
	[ "$(id -u)" -eq 0 ] ||
		die "packages are missing and only root can install them: sudo apt-get install $missing"
	say "installing $(wc -w <<<"$missing") packages (scripts/packages.txt)"
	export DEBIAN_FRONTEND=noninteractive
	apt_update
	apt_install "$missing" || { sleep 5 && apt_update && apt_install "$missing"; } ||
		die "apt-get cannot install the packages; is there a network?"
}

# True if the directory is configured for this source tree and ninja can update it.
build_dir_works()
{
	[ -f "$1/build.ninja" ] &&
		grep -qF "\"source\": \"$root\"" "$1/meson-info/meson-info.json" 2>/dev/null &&
		logged ninja -C "$1" build.ninja
}

# setup_build DIR MESON-OPTION...: configures the directory unless it works already.
setup_build()
{
	local dir=$1
	shift
	# If the clock was set back, meson and ninja refuse files with times in the future.
	find "$root" -type f -not -path '*/.git/*' -newermt now -exec touch {} + 2>/dev/null
	build_dir_works "$dir" && return 0
	rm -rf "$dir"
	logged meson setup "$@" "$dir" "$root" ||
		die "meson cannot configure $dir; the last lines of the log say what is missing"
}

# Gives files made under sudo to the user who called it.
give_back()
{
	[ -z "${SUDO_UID:-}" ] || chown -R "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$@" 2>/dev/null || :
}
