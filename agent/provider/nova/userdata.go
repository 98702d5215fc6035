package nova

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova/section"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/upgrade"
)

// UserDataFile is the file with the user data of a group's servers.
func UserDataFile(raw json.RawMessage, group cluster.GroupID) (string, error) {
	s, err := section.Parse(raw)
	if err != nil {
		return "", err
	}
	for _, g := range s.Groups {
		if g.Name == string(group) {
			return g.UserData, nil
		}
	}
	return "", fmt.Errorf("groups.yaml has no group %s", group)
}

// WithUpgrades lets the version of Kubernetes in the user data follow what f wants: the file stays as it is, and each
// new server gets what is rendered of it.
func WithUpgrades(f *upgrade.Follower) Option { return func(p *Provider) { p.upgrades = f } }

// firstBoot is the user data of a group's servers.
type firstBoot struct {
	text []byte
	// key is the same where text makes the same Node. A newer release of the agent may render other text of the same file.
	key []byte
	// properties are those of a server that is started with text; wanted are those by which its drift is judged.
	properties, wanted cluster.Spec
	warning            string
}

// userData reads the file of a group and lets its version follow. The digest is that of the file: two leaders of different
// releases do not replace each other's servers. Where the version is held, none is wanted: what was
// started meanwhile with a newer one stays.
func (p *Provider) userData(g *section.Group) (firstBoot, error) {
	file, err := os.ReadFile(g.UserData)
	if err != nil {
		return firstBoot{}, invalidRequest("user data: %v: make it with autoscaler-agent userdata render --cloud openstack", err)
	}
	follows, known := p.upgrades.Follows()
	if follows && !known {
		return firstBoot{}, errors.New("the API server's version, which the user data follows, is not known yet")
	}
	properties := userdata.Properties(file)
	out := firstBoot{text: file, key: file, properties: properties, wanted: properties}
	made := p.upgrades.Of(file)
	if made.Why != "" {
		out.warning = fmt.Sprintf("%s (%s)", made.Why, made.Remedy)
	}
	switch {
	case made.Text != nil:
		out.text, out.key = made.Text, slices.Concat(file, []byte("\n# "+made.To))
		out.properties, out.wanted = with(properties, made.To), with(properties, made.Wanted)
	case made.Why != "" && follows:
		out.wanted = with(properties, "")
	}
	return out, nil
}

// with are properties with a version of Kubernetes; empty: none is told.
func with(properties cluster.Spec, version string) cluster.Spec {
	out := maps.Clone(properties)
	delete(out, cluster.PropertyKubernetes)
	if version != "" {
		out[cluster.PropertyKubernetes] = version
	}
	return out
}
