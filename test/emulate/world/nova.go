package world

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
	glue "github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine/openstack"
)

var _ = register("nova", newNova)

// nova is the emulated OpenStack with its servers.
type nova struct {
	*openstack.Cloud
	w      *World
	groups map[string]Workers
}

// newNova starts the emulated OpenStack and the glue that boots a machine for every
// server that becomes ACTIVE.
func newNova(_ context.Context, w *World) (Cloud, error) {
	c := &nova{w: w, groups: map[string]Workers{}}
	o := openstack.Options{BuildDelay: w.Pace.Launch + w.Pace.Boot, DeleteDelay: w.Pace.Terminate, Jitter: w.Pace.Jitter,
		Seed: cmp.Or(w.Pace.Seed, uint64(time.Now().UnixNano())), Log: w.LogFile("openstack.log")}
	g := glue.Glue{Fleet: w.Fleet, Cloud: func() *openstack.Cloud { return c.Cloud }, Log: w.LogFile("machines.log"), Kernel: w.KernelMemory}
	g.Attach(&o)
	var err error
	if c.Cloud, err = openstack.New(o); err != nil {
		return nil, err
	}
	// About 4 cores and 16 GiB, as the stories want it.
	c.PutFlavor(openstack.Flavor{Name: c.MachineType(), VCPUs: 4, RAM: 16384, Disk: 40})
	return c, nil
}

func (c *nova) Banner() string {
	return fmt.Sprintf("an emulated OpenStack (Keystone, Nova, Glance, Neutron) answers at %s", c.Endpoint())
}

func (c *nova) Env() []string {
	return []string{
		"AUTOSCALER_NOVA_CLUSTER_NAME=" + ClusterName, "AUTOSCALER_NOVA_VM_MEMORY_OVERHEAD_PERCENT=7.5",
		"OS_AUTH_URL=" + c.AuthURL(), "OS_REGION_NAME=" + c.Name(),
		"OS_APPLICATION_CREDENTIAL_ID=" + openstack.ApplicationID, "OS_APPLICATION_CREDENTIAL_SECRET=" + openstack.ApplicationSecret,
	}
}

func (*nova) RenderFlags() []string { return []string{"--cloud", "openstack"} }
func (*nova) MachineType() string   { return "m1.workers" }

// PutWorkers writes the user data to a file and the group into groups.yaml.
func (c *nova) PutWorkers(_ context.Context, g Workers) (string, error) {
	file := filepath.Join(c.w.Dir, g.Name+".sh")
	if err := os.WriteFile(file, g.UserData, 0o600); err != nil {
		return "", err
	}
	c.groups[g.Name] = g
	var list []any
	for _, name := range sortedKeys(c.groups) {
		g := c.groups[name]
		group := map[string]any{"name": name, "min": g.Min, "max": g.Max, "flavor": g.InstanceType, "image": cmp.Or(g.Image, openstack.ImageName), "networks": []string{openstack.NetworkName},
			"securityGroups": []string{"workers"}, "key": openstack.KeyName, "userdata": filepath.Join(c.w.Dir, name+".sh")}
		if len(g.Zones) > 0 {
			group["zones"] = g.Zones
		}
		list = append(list, group)
	}
	return fmt.Sprintf("in groups.yaml with %d bytes of generated user data, into which each server gets a token of its own", len(g.UserData)),
		c.w.PutSection("nova", map[string]any{"groups": list})
}

func sortedKeys[V any](m map[string]V) []string {
	var out []string
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

// Group: the target is the number of servers that are not on their way out.
func (c *nova) Group(name string) (Group, bool) {
	g, ok := c.groups[name]
	out := Group{Min: g.Min, Max: g.Max}
	for _, s := range c.Servers() {
		if s.Metadata["autoscaler-agent.group"] == name && s.TaskState != "deleting" {
			out.Target++
		}
	}
	return out, ok
}

func (c *nova) Instances(group string) []Instance {
	var out []Instance
	for _, s := range c.Servers() {
		if g := s.Metadata["autoscaler-agent.group"]; group == "" || g == group {
			state := s.Status
			if s.TaskState != "" {
				state += " (" + s.TaskState + ")"
			}
			out = append(out, Instance{ID: s.ID, Group: g, State: state, Alive: true})
		}
	}
	return out
}

// apart is how far apart two requests are that were not made in one go.
const apart = 400 * time.Millisecond

// Raises: every server is one request; those that were made in one go are one raise.
func (c *nova) Raises() []Raise {
	var out []Raise
	var last time.Time
	for _, call := range c.Calls() {
		if call.Action != "POST /servers" || call.Status != 202 {
			continue
		}
		if call.At.Sub(last) > apart {
			out = append(out, Raise{At: call.At, What: call.Action})
		}
		last = call.At
	}
	return out
}

func (c *nova) Counts() map[string]int {
	out := map[string]int{}
	for _, call := range c.Calls() {
		if call.Service == "metadata" {
			continue // the machines ask there
		}
		out[call.Service+" "+call.Action]++
	}
	return out
}

// Leftovers: a finished story leaves no ports, no floating IPs and no volumes.
func (c *nova) Leftovers() []string {
	var out []string
	for _, p := range c.Ports() {
		out = append(out, "port "+strings.TrimSpace(p.ID+" "+p.Name))
	}
	for _, f := range c.FloatingIPs() {
		out = append(out, "floating IP "+f.Address)
	}
	for _, v := range c.Volumes() {
		out = append(out, "volume "+v.ID)
	}
	return out
}

func (c *nova) Close() error {
	c.Cloud.Close()
	return nil
}
