package userdata

import (
	"maps"
	"slices"
)

// place is what the script must know of a kind of cloud.
type place struct {
	limit int // of user data, in bytes before base64
	// facts asks the machine's metadata service. It sets NODE_NAME and what labels and
	// providerID use.
	facts string
	// labels of the Node and the shell variable of each value; nil where facts sets LABELS.
	labels     [][2]string
	providerID string // a document's text, with refs
	// perServer tells that the agent, which makes the server, can put a token of its own in the
	// place of TokenPlaceholder.
	perServer bool
}

// TokenPlaceholder in the place of a token is left in the script: the provider puts a
// token of its own there for each server that it makes.
const TokenPlaceholder = "{{join token}}"

// places are the clouds that are known. EC2 counts raw bytes of user data; Nova takes
// 65535 characters of base64.
var places = map[string]place{
	"aws": {limit: 16384, facts: awsFacts, providerID: "aws:///" + ref("ZONE") + "/" + ref("INSTANCE_ID"), labels: [][2]string{
		{"node.kubernetes.io/instance-type", "INSTANCE_TYPE"},
		{"topology.kubernetes.io/region", "REGION"},
		{"topology.kubernetes.io/zone", "ZONE"},
	}},
	"openstack": {limit: 49149, facts: openstackFacts, providerID: ref("PROVIDER_ID"), perServer: true},
}

// Clouds are the names of the clouds that are known, sorted.
func Clouds() []string { return slices.Sorted(maps.Keys(places)) }

// Limit is the largest user data that the cloud takes, in bytes before base64; 0
// for a cloud that this package does not know.
func Limit(cloud string) int { return places[cloud].limit }

// TokenPerServer tells whether user data for the cloud may hold TokenPlaceholder.
func TokenPerServer(cloud string) bool { return places[cloud].perServer }

const awsFacts = `imds=${AWS_EC2_METADATA_SERVICE_ENDPOINT:-http://169.254.169.254}
imds=${imds%/}/latest
phase metadata
session=$(curl -fsS --connect-timeout 5 --max-time 20 --retry 6 --retry-connrefused -X PUT \
  -H 'X-aws-ec2-metadata-token-ttl-seconds: 3600' "$imds/api/token") || die reason=imds-token
fact() {
  printf 'X-aws-ec2-metadata-token: %s\n' "$session" |
    curl -fsS --connect-timeout 5 --max-time 20 --retry 6 --retry-connrefused -H @- "$imds/meta-data/$1"
}
# A VPC whose DHCP options list several domains yields several names; the first counts.
NODE_NAME=$(fact local-hostname) || die reason=imds-local-hostname
NODE_NAME=$(printf '%s' "${NODE_NAME%% *}" | tr 'A-Z' 'a-z')
INSTANCE_ID=$(fact instance-id) || die reason=imds-instance-id
INSTANCE_TYPE=$(fact instance-type) || die reason=imds-instance-type
ZONE=$(fact placement/availability-zone) || die reason=imds-zone
REGION=$(fact placement/region) || die reason=imds-region
for v in "$NODE_NAME" "$INSTANCE_ID" "$INSTANCE_TYPE" "$ZONE" "$REGION"; do
  case $v in '' | *[!a-z0-9.-]*) die "reason=bad-metadata" ;; esac
done
`

// openstackFacts reads meta_data.json of the metadata service, or of the configuration
// drive where a network has no such service. A Node is named after its server, as the
// cloud controller manager wants it; region, flavor and the form of the provider ID, which
// Nova does not tell, are in the server's own metadata (see agent/provider/nova). The document's own fields are
// looked for once everything that is nested in it is cut away: its keys have names too.
const openstackFacts = `metadata=${OPENSTACK_METADATA_ENDPOINT:-http://169.254.169.254}
metadata=${metadata%/}
phase metadata
drive() {
  [ -e /dev/disk/by-label/config-2 ] || return 1
  mkdir -p "$dir/drive"
  mount -o ro /dev/disk/by-label/config-2 "$dir/drive" || return 1
  cat "$dir/drive/openstack/latest/meta_data.json"
  umount "$dir/drive" || :
}
mkdir -p "$dir"
document=$(drive || curl -fsS --connect-timeout 5 --max-time 20 --retry 6 --retry-connrefused \
  "$metadata/openstack/latest/meta_data.json") || die reason=metadata
document=$(printf '%s' "$document" | tr -d '\n')
outer=$(printf '%s' "$document" | sed -e 's/^ *{//' -e 's/} *$//' -e ':a' -e 's/{[^{}]*}//g' -e 'ta' -e 's/\[[^][]*\]//g')
fact() {
  printf '%s' "$1" | tr ',{}' '\n\n\n' | sed -n 's/^ *"'"$2"'": *"\([^"\\]*\)" *$/\1/p' | head -n 1
}
NODE_NAME=$(fact "$outer" name | tr 'A-Z' 'a-z')
INSTANCE_ID=$(fact "$outer" uuid)
ZONE=$(fact "$outer" availability_zone)
REGION=$(fact "$document" 'autoscaler-agent\.region')
INSTANCE_TYPE=$(fact "$document" 'autoscaler-agent\.type')
PROVIDER_ID=$(fact "$document" 'autoscaler-agent\.provider-id')
case $PROVIDER_ID in *[!A-Za-z0-9:/._-]*) die reason=bad-metadata-provider-id ;; esac
PROVIDER_ID=${PROVIDER_ID:-openstack:///}$INSTANCE_ID
case $NODE_NAME in '' | *[!a-z0-9.-]*) die reason=bad-metadata-name ;; esac
case $INSTANCE_ID in '' | *[!a-f0-9-]*) die reason=bad-metadata-uuid ;; esac
LABELS=
label() {
  case $2 in '' | *[!A-Za-z0-9._-]* | [._-]* | *[._-]) return 0 ;; esac
  LABELS=${LABELS:+$LABELS,}$1=$2
}
label topology.kubernetes.io/region "$REGION"
label topology.kubernetes.io/zone "$ZONE"
label node.kubernetes.io/instance-type "$INSTANCE_TYPE"
`
