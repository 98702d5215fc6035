package template

import (
	"fmt"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/userdata/upgrade"
)

// Upgrades tell which version of Kubernetes user data should install, and which launch templates the agent
// publishes it in. The zero value tells nothing.
type Upgrades struct {
	Follower  *upgrade.Follower
	Published []string // IDs
}

// warnUpgrade tells what keeps the machines of a group from the version of Kubernetes that they should have. What the
// agent publishes in a moment is no warning.
func (rs *Resolver) warnUpgrade(d *draft, versions answers) {
	for _, c := range d.choices {
		t := versions[c.ref].template
		if t == nil {
			continue
		}
		out := rs.Upgrades.Follower.Of(t.text)
		switch {
		case out.Why != "":
			d.warn("%s (%s)", out.Why, out.Remedy)
		case out.Text == nil:
		case c.ref.version != "$Latest":
			d.warn("%s, but the group launches version %s of its launch template: a new version reaches it when that is $Latest", stays(out), c.ref.version)
		case !slices.Contains(rs.Upgrades.Published, t.id):
			d.warn("%s, but AUTOSCALER_BOOTSTRAP_LAUNCH_TEMPLATES does not name its launch template %s: the agent publishes no version of it", stays(out), t.id)
		}
	}
}

func stays(out upgrade.Outcome) string {
	return fmt.Sprintf("its user data installs Kubernetes %s and should install %s", out.From, out.To)
}
