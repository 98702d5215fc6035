package nova

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// TokenPlaceholder stands for the join token in user data whose servers get one each.
// Package userdata renders it.
const TokenPlaceholder = "{{join token}}"

// afterwards is how long a call goes on after its context, to leave nothing behind.
const afterwards = 3 * time.Second

// userDataLimit is what Nova takes, after base64.
const userDataLimit = 65535

// order is what all servers of one Resize have in common.
type order struct {
	cluster  string
	group    *Group
	image    image
	networks []string          // IDs, as the group's
	security map[string]string // IDs of security groups, by name; only where ports are made
	floating string            // ID of the external network
	anti     string            // ID of the server group
	script   []byte
}

// order finds everything that a server of the group needs.
func (p *Provider) order(ctx context.Context, s *site, of string, g *Group) (*order, error) {
	o := &order{cluster: of, group: g, security: map[string]string{}}
	var err error
	if o.script, err = os.ReadFile(g.UserData); err != nil {
		return nil, wrong("user data: %v: make it with autoscaler-agent userdata render --cloud openstack", err)
	}
	if base64.StdEncoding.EncodedLen(len(o.script)) > userDataLimit {
		return nil, wrong("user data %s: %d bytes, and Nova takes at most %d", g.UserData, len(o.script), base64.StdEncoding.DecodedLen(userDataLimit))
	}
	if bytes.Contains(o.script, []byte(TokenPlaceholder)) && p.token == nil {
		return nil, wrong("user data %s: it wants a join token for each server, and this agent mints none: AUTOSCALER_BOOTSTRAP_ENABLED must be true", g.UserData)
	}
	if o.image, err = s.image(ctx, g.Image); err != nil {
		return nil, err
	}
	for _, n := range g.Networks {
		network, err := s.networkID(ctx, n.Network)
		if err != nil {
			return nil, err
		}
		o.networks = append(o.networks, network)
		if !g.ports() {
			continue
		}
		for _, name := range slices.Concat(g.SecurityGroups, n.SecurityGroups) {
			if o.security[name], err = s.securityGroupID(ctx, name); err != nil {
				return nil, err
			}
		}
	}
	if g.FloatingIP != "" {
		if o.floating, err = s.networkID(ctx, g.FloatingIP); err != nil {
			return nil, err
		}
	}
	o.anti, err = s.serverGroup(ctx, of, g)
	return o, err
}

// serverGroup finds the group's server group, or makes it.
func (s *site) serverGroup(ctx context.Context, of string, g *Group) (string, error) {
	if g.ServerGroup == "" || uuidOf(g.ServerGroup) != "" {
		return g.ServerGroup, nil
	}
	name := "autoscaler-agent-" + of + "-" + g.Name + "-" + g.ServerGroup
	return remembered(s, "server group "+name, keepNames, func() (string, error) {
		type group struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		}
		var list struct {
			Groups []group `json:"server_groups"`
		}
		if err := s.get(ctx, "compute", "os-server-groups", nil, &list); err != nil {
			return "", err
		}
		if i := slices.IndexFunc(list.Groups, func(o group) bool { return o.Name == name }); i >= 0 {
			return list.Groups[i].ID, nil
		}
		c, minor, err := s.nova(ctx)
		if err != nil {
			return "", err
		}
		body := map[string]any{"name": name, "policy": g.ServerGroup}
		if minor < 64 {
			body = map[string]any{"name": name, "policies": []string{g.ServerGroup}}
		}
		var made struct {
			Group group `json:"server_group"`
		}
		_, err = c.Post(ctx, c.ServiceURL("os-server-groups"), map[string]any{"server_group": body}, &made, &gophercloud.RequestOpts{OkCodes: []int{200}})
		return made.Group.ID, err
	})
}

// newName is a name that no other server has, good as the name of a Node.
func newName(g *Group) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)]
	}
	return g.Name + "-" + string(b[:])
}

func newRequest() string {
	var b [12]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// createOne asks for one server. One whose request was not answered is looked for by
// its name and its request before the request counts as failed: Nova's POST is not
// idempotent.
func (p *Provider) createOne(ctx context.Context, s *site, o *order, w wish) error {
	name, request := newName(o.group), newRequest()
	f, err := s.flavor(ctx, w.flavor)
	if err != nil {
		return err
	}
	script := o.script
	if bytes.Contains(script, []byte(TokenPlaceholder)) {
		token, err := p.token(ctx, name)
		if err != nil {
			return &provider.Error{Op: "mint a join token for " + name, Kind: provider.Transient, Err: err}
		}
		script = bytes.ReplaceAll(script, []byte(TokenPlaceholder), []byte(token))
	}
	c, minor, err := s.nova(ctx)
	if err != nil {
		return err
	}
	var made struct {
		Server struct {
			ID string `json:"id"`
		} `json:"server"`
	}
	ports, err := s.makePorts(ctx, o, name)
	if err == nil {
		_, err = c.Post(ctx, c.ServiceURL("servers"), o.body(s, f, w, name, request, script, ports, minor), &made, &gophercloud.RequestOpts{OkCodes: []int{200, 202}})
	}
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.made[made.Server.ID] = born{o.group.Name, s.now()}
		return nil
	}
	later, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
	defer cancel()
	if uncertain(err) {
		if found, unsure := s.find(later, name, request); found {
			return nil
		} else if unsure != nil {
			// It may still come; its ports stay for it, and a later sweep finds them.
			return err
		}
	}
	s.dropPorts(later, ports)
	if code := answered(err); code == http.StatusBadRequest || code == http.StatusNotFound {
		s.forget()
		if code == http.StatusNotFound { // of a port or a network that is gone, not of the group
			e := openstack.Classify("", "", err)
			e.Kind = provider.Invalid
			return e
		}
	}
	return err
}

// find looks for a server by the name and the request that only this process knows.
func (s *site) find(ctx context.Context, name, request string) (bool, error) {
	list, err := s.pages(ctx, url.Values{"name": {"^" + regexp.QuoteMeta(name) + "$"}})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list, func(one server) bool { return one.Metadata[metaRequest] == request }), nil
}

// body is the request for one server.
func (o *order) body(s *site, f flavor, w wish, name, request string, script []byte, ports []string, minor int) map[string]any {
	g := o.group
	meta := map[string]string{metaCluster: o.cluster, metaGroup: g.Name, metaRequest: request, metaZone: w.zone, metaFlavor: w.flavor, metaType: f.Name, metaRegion: s.region(), metaProviderID: string(s.providerID(""))}
	maps.Copy(meta, g.Metadata)
	server := map[string]any{"name": name, "flavorRef": f.ID, "metadata": meta, "user_data": base64.StdEncoding.EncodeToString(script)}
	if minor >= 52 {
		server["tags"] = []string{tagOf(o.cluster)}
	}
	var nics []any
	for i, id := range o.networks {
		if len(ports) > 0 {
			nics = append(nics, map[string]string{"port": ports[i]})
		} else {
			nics = append(nics, map[string]string{"uuid": id})
		}
	}
	server["networks"] = nics
	if len(ports) == 0 && len(g.SecurityGroups) > 0 {
		var names []any
		for _, n := range g.SecurityGroups {
			names = append(names, map[string]string{"name": n})
		}
		server["security_groups"] = names
	}
	if g.Key != "" {
		server["key_name"] = g.Key
	}
	if w.zone != "" {
		server["availability_zone"] = w.zone
	}
	if g.ConfigDrive {
		server["config_drive"] = true
	}
	if v := g.BootVolume; v != nil {
		device := map[string]any{"boot_index": 0, "uuid": o.image.ID, "source_type": "image", "destination_type": "volume", "volume_size": v.Size, "delete_on_termination": true}
		if v.Type != "" && minor >= 67 {
			device["volume_type"] = v.Type
		}
		server["block_device_mapping_v2"] = []any{device}
	} else {
		server["imageRef"] = o.image.ID
	}
	out := map[string]any{"server": server}
	if o.anti != "" {
		out["os:scheduler_hints"] = map[string]string{"group": o.anti}
	}
	return out
}

// room tells whether the project's quota has room for more servers, before any is made:
// Nova itself would make the first of them and refuse the rest.
func (s *site) room(ctx context.Context, wishes []wish) error {
	var doc struct {
		Limits struct {
			Absolute struct {
				Instances     int `json:"maxTotalInstances"`
				InstancesUsed int `json:"totalInstancesUsed"`
				Cores         int `json:"maxTotalCores"`
				CoresUsed     int `json:"totalCoresUsed"`
				RAM           int `json:"maxTotalRAMSize"`
				RAMUsed       int `json:"totalRAMUsed"`
			} `json:"absolute"`
		} `json:"limits"`
	}
	if err := s.get(ctx, "compute", "limits", nil, &doc); err != nil {
		if code := answered(err); code == http.StatusForbidden || code == http.StatusNotFound {
			return nil // no access rule for it: Nova will say itself when it is enough
		}
		return err
	}
	cores, ram := 0, 0
	for _, w := range wishes {
		f, err := s.flavor(ctx, w.flavor)
		if err != nil {
			return err
		}
		cores, ram = cores+f.VCPUs, ram+f.RAM
	}
	a := doc.Limits.Absolute
	for _, one := range []struct {
		name              string
		limit, used, want int
	}{{"instances", a.Instances, a.InstancesUsed, len(wishes)}, {"cores", a.Cores, a.CoresUsed, cores}, {"MiB of RAM", a.RAM, a.RAMUsed, ram}} {
		if one.limit >= 0 && one.used+one.want > one.limit {
			return &provider.Error{Kind: provider.Exhausted, Err: fmt.Errorf("quota: %d more servers want %d %s, and %d of the project's %d are used", len(wishes), one.want, one.name, one.used, one.limit),
				Remedy: "ask for a higher quota, or lower the group's max"}
		}
	}
	return nil
}
