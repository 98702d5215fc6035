package world

import (
	"context"
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
)

var _ = register("magnum", newMagnum)

// magnum is the emulated OpenStack with a Magnum cluster whose control plane is the
// World's own. Magnum's drivers make the user data of their nodes; the emulated one
// passes on what was rendered for the group.
type magnum struct{ *nova }

func newMagnum(ctx context.Context, w *World) (Cloud, error) {
	c, err := newNova(ctx, w)
	if err != nil {
		return nil, err
	}
	m := magnum{c.(*nova)}
	m.SetMagnum(10, 200*time.Millisecond, 200*time.Millisecond)
	if _, err := m.PutCluster(openstack.MagnumCluster{Name: ClusterName, Masterless: true}); err != nil {
		m.Cloud.Close()
		return nil, err
	}
	return m, nil
}

func (m magnum) Banner() string {
	return fmt.Sprintf("an emulated OpenStack (Keystone, Nova, Heat, Magnum) answers at %s", m.Endpoint())
}

func (m magnum) Env() []string {
	return []string{
		"AUTOSCALER_MAGNUM_CLUSTER=" + ClusterName, "AUTOSCALER_MAGNUM_AUTO_DISCOVERY=magnum:role=worker",
		"OS_AUTH_URL=" + m.AuthURL(), "OS_REGION_NAME=" + m.Name(),
		"OS_APPLICATION_CREDENTIAL_ID=" + openstack.ApplicationID, "OS_APPLICATION_CREDENTIAL_SECRET=" + openstack.ApplicationSecret,
	}
}

// RenderFlags: Magnum gives all nodes of a group the same user data, so there is no
// token for each server; its drivers set the label of the role.
func (magnum) RenderFlags() []string {
	return []string{"--cloud", "openstack", "--shared-token", "--label", "magnum.openstack.org/role=worker"}
}

// PutWorkers makes a node group with a maximum.
func (m magnum) PutWorkers(_ context.Context, g Workers) (string, error) {
	labels := map[string]string{}
	if len(g.Zones) == 1 {
		labels["availability_zone"] = g.Zones[0]
	}
	err := m.PutNodeGroup(ClusterName, openstack.NodeGroup{Name: g.Name, Flavor: g.InstanceType, Count: g.Min, Min: g.Min, Max: g.Max, Labels: labels, UserData: g.UserData})
	return fmt.Sprintf("a node group of Magnum with the role worker; its servers get %d bytes of generated user data", len(g.UserData)), err
}

func (m magnum) Group(name string) (Group, bool) {
	g, ok := m.NodeGroupNamed(ClusterName, name)
	return Group{Min: g.Min, Max: g.Max, Target: g.Count}, ok
}

func (m magnum) Instances(group string) []Instance {
	owner := map[string]string{}
	for _, name := range m.NodeGroups(ClusterName) {
		g, _ := m.NodeGroupNamed(ClusterName, name)
		for _, s := range g.Servers {
			owner[s.ID] = name
		}
	}
	out := m.nova.Instances("")
	kept := out[:0]
	for _, i := range out {
		if i.Group = owner[i.ID]; group == "" || i.Group == group {
			kept = append(kept, i)
		}
	}
	return kept
}

// Raises are the resizes to more nodes; to fewer they name who goes.
func (m magnum) Raises() []Raise {
	var out []Raise
	for _, r := range m.Resizes() {
		if r.To > r.From {
			out = append(out, Raise{At: r.At, What: "POST /clusters/{id}/actions/resize"})
		}
	}
	return out
}
