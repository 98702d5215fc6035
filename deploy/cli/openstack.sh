#!/bin/sh
# Makes what a cluster needs on OpenStack, with the openstack command: what
# deploy/terraform/openstack makes with Terraform. Everything that is there already is
# found by its name and kept, so that the script may be run again. The project and the
# person are the openstack command's own (OS_CLOUD, or the variables OS_*): a user with a
# password, because Keystone lets no application credential make another.
set -eu
umask 077

usage() {
	cat >&2 <<'END'
openstack.sh leader --cluster NAME --admin CIDR --key FILE.pub --network NAME --flavor NAME
             [--external NETWORK] [--image ubuntu-24.04] [--worker-flavor NAME[,NAME]] [--min 0] [--max 10]
             [--role member] [--access-rules yes|no] [--between ports|all]
    security groups, key pair, the leader with an address that outlives it, the agent's
    application credential in clouds.yaml, and the worker group in groups.yaml.
    --between all lets the machines reach every port of one another, for host networks,
    NodePorts and Cilium's health checks, and not the API server, kubelets and VXLAN alone
END
	exit 64
}

fail() {
	echo "openstack.sh: $*" >&2
	exit 1
}

options() {
	while [ $# -gt 0 ]; do
		[ $# -gt 1 ] || usage
		case $1 in
		--cluster) cluster=$2 ;;
		--admin) admin=$2 ;;
		--key) key=$2 ;;
		--network) network=$2 ;;
		--external) external=$2 ;;
		--image) image=$2 ;;
		--flavor) flavor=$2 ;;
		--worker-flavor) worker=$2 ;;
		--min) min=$2 ;;
		--max) max=$2 ;;
		--role) role=$2 ;;
		--access-rules) rules=$2 ;;
		--between) between=$2 ;;
		*) usage ;;
		esac
		shift 2
	done
	case $cluster in
	'' | *[!a-z0-9-]*) fail "--cluster: a name of small letters, digits and dashes" ;;
	esac
	case $between in
	ports | all) ;;
	*) fail "--between: ports or all" ;;
	esac
	[ -n "$admin" ] || fail "--admin: the network that you type from, as 203.0.113.7/32"
	[ -f "$key" ] || fail "--key: the file with your public SSH key"
	[ -n "$network" ] || fail "--network: the network of the machines"
	[ -n "$flavor" ] || fail "--flavor: the leader's flavor"
	command -v ssh-keyscan >/dev/null || fail "ssh-keyscan is not installed: it comes with the ssh command"
	worker=${worker:-$flavor}
}

# found prints the ID of what has a name: found KIND NAME. The list comes before the pipe, so that a call
# that fails ends the script, and does not look like a list without the name.
found() {
	list=$(openstack "$1" list --name "$2" -f value -c ID)
	printf '%s' "$list" | head -n 1
}

security_group() {
	list=$(openstack security group list -f value -c ID -c Name)
	id=$(printf '%s\n' "$list" | while read -r one name; do [ "$name" != "$1" ] || echo "$one"; done)
	[ -n "$id" ] || id=$(openstack security group create --description "$2" -f value -c id "$1")
	printf '%s' "$id"
}

# allow GROUP SOURCE OPTIONS, where the source is a network or a security group.
allow() {
	to=$1
	case $2 in
	*:*/*) from="--ethertype IPv6 --remote-ip $2" ;;
	*/*) from="--ethertype IPv4 --remote-ip $2" ;;
	*) from="--remote-group $2" ;;
	esac
	shift 2
	# shellcheck disable=SC2086 # options without blanks in their values
	if ! said=$(openstack security group rule create --ingress $from "$@" "$to" 2>&1); then
		case $said in
		*"already exists"*) ;;
		*) fail "$said" ;;
		esac
	fi
}

# security makes both groups: SSH from the administrator, the API server from workers,
# kubelets from all machines, and the VXLAN of flannel or cilium.
security() {
	leaders=$(security_group "$cluster-leader" "control plane of $cluster")
	workers=$(security_group "$cluster-worker" "workers of $cluster")
	allow "$leaders" "$admin" --protocol tcp --dst-port 22
	for one in "$leaders" "$workers"; do
		if [ "$between" = all ]; then
			for version in IPv4 IPv6; do
				allow "$leaders" "$one" --ethertype "$version"
				allow "$workers" "$one" --ethertype "$version"
			done
		else
			allow "$workers" "$one" --ethertype IPv4 --protocol tcp --dst-port 10250
			allow "$workers" "$one" --ethertype IPv4 --protocol udp --dst-port 8472
		fi
	done
	if [ "$between" = ports ]; then
		allow "$leaders" "$workers" --ethertype IPv4 --protocol tcp --dst-port 6443
		allow "$leaders" "$workers" --ethertype IPv4 --protocol tcp --dst-port 10250
		allow "$leaders" "$workers" --ethertype IPv4 --protocol udp --dst-port 8472
	fi
}

# server makes the leader with a port, which outlives it.
server() {
	list=$(openstack keypair list -f value -c Name)
	if ! printf '%s\n' "$list" | grep -qxF "$cluster"; then
		openstack keypair create --public-key "$key" -f value -c name "$cluster" >/dev/null
	fi
	port=$(found port "$cluster-leader")
	[ -n "$port" ] || port=$(openstack port create --network "$network" --security-group "$leaders" -f value -c id "$cluster-leader")
	address=$(openstack port show "$port" -f json -c fixed_ips)
	addresses=$(printf '%s\n' "$address" | tr ',' '\n' | sed -n 's/.*"ip_address": *"\([^"]*\)".*/\1/p')
	address=$(printf '%s\n' "$addresses" | sed '/:/d' | head -n 1)
	address=${address:-$addresses}
	public=$address
	if [ -n "$external" ]; then
		public=$(openstack floating ip list --port "$port" -f value -c 'Floating IP Address')
		[ -n "$public" ] || public=$(openstack floating ip create --port "$port" -f value -c floating_ip_address "$external")
	fi
	case $admin in
	*:*)
		public=$(printf '%s\n' "$addresses" | sed -n '/:/p' | head -n 1)
		[ -n "$public" ] || fail "--admin: $admin is of IPv6, and the network $network gave the leader no address of IPv6"
		;;
	esac
	leader=$(found server "^$cluster-leader\$")
	[ -n "$leader" ] || openstack server create --wait --image "$image" --flavor "$flavor" --key-name "$cluster" \
		--port "$port" -f value -c id "$cluster-leader" >/dev/null
	state=$(openstack server show "$cluster-leader" -f value -c status)
	[ "$state" = ACTIVE ] || fail "the leader $cluster-leader is $state: start it, or openstack server delete $cluster-leader and run this again"
}

# reachable waits until the leader answers SSH: the next commands of a person need that.
reachable() {
	tries=60
	until [ -n "$(ssh-keyscan -T 5 "$public" 2>/dev/null)" ]; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || fail "the leader runs, and answers no SSH at $public: is your own address in --admin $admin, and a router in the network $network?"
		sleep 5
	done
}

# credential makes the agent's application credential. Keystone shows its secret once.
credential() {
	[ ! -f clouds.yaml ] || return 0
	# The client calls it auth_url or auth.auth_url, by where it has it from.
	configuration=$(openstack configuration show -f shell)
	url=$(printf '%s\n' "$configuration" | sed -n 's/^\(auth[._]\)*auth_url="\(.*\)"$/\2/p' | head -n 1)
	region=$(printf '%s\n' "$configuration" | sed -n 's/^region_name="\(.*\)"$/\1/p')
	[ -n "$url" ] || fail "the openstack command does not tell the address of Keystone: set OS_AUTH_URL or OS_CLOUD"
	set -- --role "$role" --description "autoscaler-agent of $cluster"
	[ "$rules" = no ] || set -- "$@" --access-rules "$(dirname "$0")/../terraform/openstack/access-rules.json"
	answer=$(openstack application credential create "$@" -f shell -c id -c secret "$cluster-autoscaler-agent") ||
		fail "if the credential is there already and clouds.yaml is lost: openstack application credential delete $cluster-autoscaler-agent"
	id=$(printf '%s\n' "$answer" | sed -n 's/^id="\(.*\)"$/\1/p')
	secret=$(printf '%s\n' "$answer" | sed -n 's/^secret="\(.*\)"$/\1/p')
	cat >clouds.yaml.new <<END
clouds:
  $cluster:
    auth_type: v3applicationcredential
    region_name: "$region"
    auth:
      auth_url: "$url"
      application_credential_id: "$id"
      application_credential_secret: "$secret"
END
	mv clouds.yaml.new clouds.yaml
}

# groups writes the worker group, once: the file is the operator's from then on.
groups() {
	if [ -f groups.yaml ]; then
		echo "openstack.sh: groups.yaml is there already and stays as it is" >&2
		return
	fi
	cat >groups.yaml.new <<END
nova:
  cluster: $cluster
  groups:
    - name: $cluster-workers
      min: $min
      max: $max
      flavor: ["$(printf '%s' "$worker" | sed 's/,/", "/g')"]
      image: "$image"
      networks: ["$network"]
      securityGroups: ["$cluster-worker"]
      key: "$cluster"
      userdata: /etc/autoscaler-agent/worker.sh
END
	mv groups.yaml.new groups.yaml
}

leader() {
	security
	server
	credential
	groups
	reachable
	echo "LEADER=$public"
	echo "ENDPOINT=$address"
}

[ "${1:-}" = leader ] || usage
shift
cluster='' admin='' key='' network='' external='' image=ubuntu-24.04 flavor='' worker='' min=0 max=10 role=member rules=yes between=ports
options "$@"
leader
