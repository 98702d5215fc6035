package nova

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova/section"
)

// What Nova does not tell of a server is written into its metadata when it is made. A server
// without metaSource, or with another format, was made by another release: those properties are
// not known of it, and so no release replaces the servers of the one before.
const (
	metaSource   = "autoscaler-agent.source"
	sourceFormat = "1"
	metaUserData = "autoscaler-agent.source.user-data"
)

// recorded are the properties in a server's metadata, by their keys.
var recorded = map[string]string{
	metaUserData:                               cluster.PropertyUserData,
	"autoscaler-agent.source.kubernetes":       cluster.PropertyKubernetes,
	"autoscaler-agent.source.boot-image":       "image",
	"autoscaler-agent.source.boot-volume":      "boot volume",
	"autoscaler-agent.source.networks":         "networks",
	"autoscaler-agent.source.security-groups":  "security groups",
	"autoscaler-agent.source.server-group":     "server group",
	"autoscaler-agent.source.config-drive":     "configuration drive",
	"autoscaler-agent.source.floating-network": "floating IP",
}

// metadataLimit is the longest value that Nova takes.
const metadataLimit = 255

// source is what the group's next server is started from. Networks, security groups and the
// server group count as the section writes them: a name that is written as an ID is a change.
// Metadata, labels and taints make no other machine.
func source(g *section.Group, choices []flavors.Flavor, img images.Image, userData cluster.Spec) cluster.Spec {
	out := cluster.Spec{
		"image": img.ID, "key pair": cmp.Or(g.Key, cluster.Unset), "boot volume": cluster.Unset, "server group": cmp.Or(g.ServerGroup, cluster.Unset),
		"security groups": cmp.Or(strings.Join(slices.Sorted(slices.Values(g.SecurityGroups)), ", "), cluster.Unset),
		"networks":        interfaces(g), "configuration drive": fmt.Sprint(g.ConfigDrive), "floating IP": cmp.Or(g.FloatingIP, cluster.Unset),
	}
	maps.Copy(out, userData)
	if v := g.BootVolume; v != nil {
		out["boot volume"] = strings.TrimSpace(fmt.Sprintf("%d GiB %s", v.Size, v.Type))
	}
	for name, value := range out {
		out[name] = fitting(value)
	}
	if zones := slices.Sorted(slices.Values(g.Zones)); len(zones) > 0 {
		out["availability zone"] = strings.Join(zones, "|")
	}
	var names []string
	for _, f := range choices {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	out["flavor"] = strings.Join(slices.Compact(names), "|")
	return out
}

// interfaces are the group's interfaces, in their order.
func interfaces(g *section.Group) string {
	var out []string
	for _, n := range g.Networks {
		text := n.Network
		if n.Subnet != "" {
			text += " subnet " + n.Subnet
		}
		if len(n.SecurityGroups) > 0 {
			text += " security groups " + strings.Join(slices.Sorted(slices.Values(n.SecurityGroups)), " ")
		}
		if n.PortSecurity != nil {
			text += fmt.Sprintf(" port security %t", *n.PortSecurity)
		}
		if len(n.AllowedAddresses) > 0 {
			text += " allowed addresses " + strings.Join(slices.Sorted(slices.Values(n.AllowedAddresses)), " ")
		}
		out = append(out, text)
	}
	return cmp.Or(strings.Join(out, ", "), cluster.Unset)
}

// fitting makes a value fit metadata.
func fitting(value string) string {
	if len(value) <= metadataLimit {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return "sha256:" + hex.EncodeToString(sum[:8])
}

// record is the metadata of a server that is started from s.
func record(s cluster.Spec) map[string]string {
	meta := map[string]string{metaSource: sourceFormat}
	for key, name := range recorded {
		if value, told := s[name]; told {
			meta[key] = value
		}
	}
	return meta
}

// startedFrom is what a server was started from: what Nova tells of it, and what its metadata
// recorded. typ is the name of its flavor.
func (s *server) startedFrom(typ string) cluster.Spec {
	out := cluster.Spec{"key pair": cmp.Or(s.KeyName, cluster.Unset)}
	if s.Metadata[metaSource] == sourceFormat {
		for key, name := range recorded {
			if value, told := s.Metadata[key]; told {
				out[name] = value
			}
		}
	}
	image, _ := s.Image["id"].(string) // none where it boots from a volume
	for name, value := range map[string]string{"image": image, "flavor": typ, "availability zone": s.AvailabilityZone} {
		if value != "" {
			out[name] = value
		}
	}
	return out
}

// shareSources lets the servers that were started from the same source share one map.
func shareSources(list []cluster.Instance) {
	shared := map[string]cluster.Spec{}
	for i := range list {
		key := fmt.Sprint(list[i].Source) // in the order of the names
		if first, ok := shared[key]; ok {
			list[i].Source = first
		} else {
			shared[key] = list[i].Source
		}
	}
}
