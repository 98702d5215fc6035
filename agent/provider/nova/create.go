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
	"regexp"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/keypairs"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/limits"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servergroups"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova/section"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// TokenPlaceholder stands for the join token in user data whose servers get one each.
// Package userdata renders it.
const TokenPlaceholder = "{{join token}}"

// afterwards is how long a call may clean up after the end of its context.
const afterwards = 3 * time.Second

// userDataLimit is what Nova takes, after base64.
const userDataLimit = 65535

// order is what all servers of one Resize have in common.
type order struct {
	cluster  string
	group    *section.Group
	image    images.Image
	networks []string          // IDs, as the group's
	security map[string]string // IDs of security groups, by name; only where ports are made
	floating string            // ID of the external network
	anti     string            // ID of the server group
	script   []byte
	userData cluster.Spec // properties of the script
}

// order resolves everything that a server of the group needs.
func (p *Provider) order(ctx context.Context, s *site, of string, g *section.Group) (*order, error) {
	o := &order{cluster: of, group: g, security: map[string]string{}}
	boot, err := p.userData(g)
	if err != nil {
		return nil, err
	}
	o.script, o.userData = boot.text, boot.properties
	if base64.StdEncoding.EncodedLen(len(o.script)) > userDataLimit {
		return nil, invalidRequest("user data %s: %d bytes, and Nova takes at most %d", g.UserData, len(o.script), base64.StdEncoding.DecodedLen(userDataLimit))
	}
	if bytes.Contains(o.script, []byte(TokenPlaceholder)) && p.token == nil {
		return nil, invalidRequest("user data %s: it wants a join token for each server, and this agent mints none: AUTOSCALER_BOOTSTRAP_ENABLED must be true", g.UserData)
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
		if !g.OwnPorts() {
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
func (s *site) serverGroup(ctx context.Context, of string, g *section.Group) (string, error) {
	if id := openstack.UUID(g.ServerGroup); g.ServerGroup == "" || id != "" {
		return id, nil
	}
	name := "autoscaler-agent-" + of + "-" + g.Name + "-" + g.ServerGroup
	return remembered(s, "server group "+name, keepNames, func() (string, error) {
		c, minor, err := s.nova(ctx)
		if err != nil {
			return "", err
		}
		pages, err := servergroups.List(c, nil).AllPages(ctx)
		if err != nil {
			return "", s.outdated(err)
		}
		list, err := servergroups.ExtractServerGroups(pages)
		if err != nil {
			return "", err
		}
		if i := slices.IndexFunc(list, func(o servergroups.ServerGroup) bool { return o.Name == name }); i >= 0 {
			return list[i].ID, nil
		}
		opts := servergroups.CreateOpts{Name: name, Policy: g.ServerGroup}
		if minor < 64 {
			opts = servergroups.CreateOpts{Name: name, Policies: []string{g.ServerGroup}}
		}
		made, err := servergroups.Create(ctx, c, opts).Extract()
		if err == nil && made == nil {
			err = errHollow
		}
		if err != nil {
			return "", err
		}
		return made.ID, nil
	})
}

// newName is a name that no other server has, good as the name of a Node.
func newName(g *section.Group) string {
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
func (p *Provider) createOne(ctx context.Context, s *site, o *order, w placement) error {
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
	ports, err := s.makePorts(ctx, o, name)
	made := &servers.Server{}
	if err == nil {
		made, err = servers.Create(ctx, c, o.options(s, f, w, name, request, script, ports, minor), o.hints()).Extract()
	}
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.made[made.ID] = creation{o.group.Name, s.now()}
		return nil
	}
	later, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
	defer cancel()
	if unsure(err) {
		if found, unsure := s.find(later, name, request); found {
			return nil
		} else if unsure != nil {
			// It may still come; its ports stay for it, and a later sweep finds them.
			return err
		}
	}
	s.dropPorts(later, ports)
	if code := statusOf(err); code == http.StatusBadRequest || code == http.StatusNotFound {
		s.forget()
		if code == http.StatusNotFound { // of a port or a network that is gone, not of the group
			e := openstack.Classify("", "", err)
			e.Kind = provider.Invalid
			return e
		}
	}
	return err
}

// find looks for a server by its name and its request, which only this process knows.
func (s *site) find(ctx context.Context, name, request string) (bool, error) {
	list, err := s.listed(ctx, servers.ListOpts{Name: "^" + regexp.QuoteMeta(name) + "$"})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list, func(one server) bool { return one.Metadata[metaRequest] == request }), nil
}

// options are the request for one server.
func (o *order) options(s *site, f flavors.Flavor, w placement, name, request string, script []byte, ports []string, minor int) servers.CreateOptsBuilder {
	g := o.group
	meta := map[string]string{metaCluster: o.cluster, metaGroup: g.Name, metaRequest: request, metaZone: w.zone, metaFlavor: w.flavor, metaType: f.Name, metaRegion: s.region(), metaProviderID: string(s.providerID(""))}
	maps.Copy(meta, record(source(g, nil, o.image, o.userData)))
	maps.Copy(meta, g.Metadata)
	opts := servers.CreateOpts{Name: name, FlavorRef: f.ID, Metadata: meta, AvailabilityZone: w.zone,
		// Encoded here: gophercloud leaves user data alone that happens to be valid base64.
		UserData: []byte(base64.StdEncoding.EncodeToString(script))}
	if minor >= 52 {
		opts.Tags = []string{tagOf(o.cluster)}
	}
	var networks []servers.Network
	for i, id := range o.networks {
		if len(ports) > 0 {
			networks = append(networks, servers.Network{Port: ports[i]})
		} else {
			networks = append(networks, servers.Network{UUID: id})
		}
	}
	opts.Networks = networks
	if len(ports) == 0 {
		opts.SecurityGroups = g.SecurityGroups
	}
	if g.ConfigDrive {
		opts.ConfigDrive = &g.ConfigDrive
	}
	if v := g.BootVolume; v != nil {
		device := servers.BlockDevice{UUID: o.image.ID, SourceType: servers.SourceImage, DestinationType: servers.DestinationVolume, VolumeSize: v.Size, DeleteOnTermination: true}
		if minor >= 67 {
			device.VolumeType = v.Type
		}
		opts.BlockDevice = []servers.BlockDevice{device}
	} else {
		opts.ImageRef = o.image.ID
	}
	return keypairs.CreateOptsExt{CreateOptsBuilder: opts, KeyName: g.Key}
}

// hints name the server group; nil: there is none.
func (o *order) hints() servers.SchedulerHintOptsBuilder {
	if o.anti == "" {
		return nil
	}
	return servers.SchedulerHintOpts{Group: o.anti}
}

// room checks that the project's quota has room for more servers, before any is created:
// Nova itself would create the first of them and refuse the rest.
func (s *site) room(ctx context.Context, placements []placement) error {
	c, _, err := s.nova(ctx)
	if err != nil {
		return err
	}
	all, err := limits.Get(ctx, c, nil).Extract()
	if err == nil && all == nil {
		err = errHollow
	}
	if err != nil {
		if code := statusOf(s.outdated(err)); code == http.StatusForbidden || code == http.StatusNotFound {
			return nil // no access rule for limits: Nova itself refuses what is too much
		}
		return err
	}
	cores, ram := 0, 0
	for _, w := range placements {
		f, err := s.flavor(ctx, w.flavor)
		if err != nil {
			return err
		}
		cores, ram = cores+f.VCPUs, ram+f.RAM
	}
	a := all.Absolute
	for _, one := range []struct {
		name              string
		limit, used, want int
	}{{"instances", a.MaxTotalInstances, a.TotalInstancesUsed, len(placements)}, {"cores", a.MaxTotalCores, a.TotalCoresUsed, cores}, {"MiB of RAM", a.MaxTotalRAMSize, a.TotalRAMUsed, ram}} {
		if one.limit >= 0 && one.used+one.want > one.limit {
			return &provider.Error{Kind: provider.Exhausted, Err: fmt.Errorf("quota: %d more servers want %d %s, and %d of the project's %d are used", len(placements), one.want, one.name, one.used, one.limit),
				Remedy: "ask for a higher quota, or lower the group's max"}
		}
	}
	return nil
}
