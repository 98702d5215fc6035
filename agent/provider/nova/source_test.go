package nova

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova/section"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

func sampleGroup() *section.Group {
	return &section.Group{Name: "workers", Image: "ubuntu", Key: "ops", Networks: []section.Network{{Network: "nodes"}}, SecurityGroups: []string{"b", "a"},
		Zones: []string{"az2", "az1"}, ServerGroup: "anti-affinity", FloatingIP: "public", BootVolume: &section.Volume{Size: 40, Type: "ssd"}}
}

var (
	choices = []flavors.Flavor{{ID: "1", Name: "m1.large"}, {ID: "2", Name: "c1.large"}}
	img     = images.Image{ID: "0f0f"}
	script  = []byte("#!/bin/sh\nkubeadm join --token abcdef.0123456789abcdef\n")
)

// TestRecordIsStable pins what the agent writes on servers: if it fails, raise sourceFormat, or
// this release replaces every server that the one before has made.
func TestRecordIsStable(t *testing.T) {
	want := map[string]string{
		"autoscaler-agent.source": "1", "autoscaler-agent.source.user-data": "sha256:4015707922732de3", "autoscaler-agent.source.boot-image": "0f0f",
		"autoscaler-agent.source.boot-volume": "40 GiB ssd", "autoscaler-agent.source.networks": "nodes", "autoscaler-agent.source.security-groups": "a, b",
		"autoscaler-agent.source.server-group": "anti-affinity", "autoscaler-agent.source.config-drive": "false", "autoscaler-agent.source.floating-network": "public",
	}
	if got := record(source(sampleGroup(), choices, img, userdata.Properties(script))); !maps.Equal(got, want) {
		t.Errorf("%v\nwant\n%v", got, want)
	}
}

// made is a server as Nova lists it after it was made with the metadata.
func made(meta map[string]string, bootsFromVolume bool) *server {
	s := &server{servers.Server{KeyName: "ops", AvailabilityZone: "az1", Metadata: meta, Image: map[string]any{"id": "0f0f"}}}
	if bootsFromVolume {
		s.Image = map[string]any{} // gophercloud makes of Nova's empty text
	}
	return s
}

func TestStartedFrom(t *testing.T) {
	now := source(sampleGroup(), choices, img, userdata.Properties(script))
	if d := made(record(now), true).startedFrom("c1.large").Differences(now); len(d) > 0 {
		t.Errorf("a server that was just made differs: %v", d)
	}
	for name, meta := range map[string]map[string]string{
		"of the release before": nil,
		"of a later format":     {metaSource: "2", metaUserData: "something else"},
	} {
		got := made(meta, false).startedFrom("m1.large")
		if d := got.Differences(now); len(d) > 0 || len(got) != 4 {
			t.Errorf("a server %s tells %v and differs in %v", name, got, d)
		}
	}
	old := made(record(now), true).startedFrom("m1.small")
	if d := old.Differences(now); len(d) != 1 || d[0] != (cluster.Difference{Property: "flavor", Is: "m1.small", Wanted: "c1.large|m1.large"}) {
		t.Errorf("of another flavor: %v", d)
	}
	rebuilt := made(record(now), false)
	rebuilt.Image["id"] = "abab" // openstack server rebuild --image
	if d := rebuilt.startedFrom("m1.large").Differences(now); len(d) != 1 || d[0].Is != "abab" {
		t.Errorf("a rebuilt server: %v", d)
	}
}

// TestEveryFieldIsCompared: a change of a field of the section is told, but for those that make
// no other machine. A new field is one of them.
func TestEveryFieldIsCompared(t *testing.T) {
	unread := map[string]string{
		"Name": "the group", "Cloud": "the group's", "Min": "a bound", "Max": "a bound", "Price": "no machine", "Flavors": "nil once it is parsed",
		"Flavor": "the flavor that it names", "Image": "the image that it names", "UserData": "what the file holds", "Arch": "a label",
		"EachZone": "makes groups", "MaxTotal": "a bound", "Labels": "of the Node", "Taints": "of the Node", "Metadata": "is changed in place",
	}
	now := source(sampleGroup(), choices, img, userdata.Properties(script))
	typ := reflect.TypeFor[section.Group]()
	for i := range typ.NumField() {
		g := sampleGroup()
		f := reflect.ValueOf(g).Elem().Field(i)
		if !f.CanSet() {
			continue
		}
		f.Set(other(f))
		d := source(g, choices, img, userdata.Properties(script)).Differences(now)
		if _, not := unread[typ.Field(i).Name]; not != (len(d) == 0) {
			t.Errorf("%s is changed, and told is %v", typ.Field(i).Name, d)
		}
	}
	network := reflect.TypeFor[section.Network]()
	for i := range network.NumField() {
		g := sampleGroup()
		f := reflect.ValueOf(&g.Networks[0]).Elem().Field(i)
		f.Set(other(f))
		if d := source(g, choices, img, userdata.Properties(script)).Differences(now); len(d) != 1 || d[0].Property != "networks" {
			t.Errorf("%s of a network is changed, and told is %v", network.Field(i).Name, d)
		}
	}
	if d := source(sampleGroup(), choices, images.Image{ID: "abab"}, userdata.Properties(append([]byte("#\n"), script...))).Differences(now); len(d) != 2 {
		t.Errorf("another image and user data: %v", d)
	}
}

// other is another value of the type.
func other(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.String:
		return reflect.ValueOf("other").Convert(v.Type())
	case reflect.Bool:
		return reflect.ValueOf(!v.Bool())
	case reflect.Int:
		return reflect.ValueOf(77)
	case reflect.Float64:
		return reflect.ValueOf(7.7)
	case reflect.Pointer:
		if !v.IsNil() {
			return reflect.Zero(v.Type())
		}
		return reflect.New(v.Type().Elem())
	case reflect.Map:
		return reflect.ValueOf(map[string]string{"other": "other"})
	case reflect.Slice:
		out := reflect.MakeSlice(v.Type(), 1, 1)
		if k := v.Type().Elem().Kind(); k == reflect.String {
			out.Index(0).Set(other(out.Index(0)))
		}
		return out
	}
	return reflect.Zero(v.Type())
}

// Nova takes no value of more than 255 characters.
func TestRecordFits(t *testing.T) {
	g := sampleGroup()
	for range 40 {
		g.SecurityGroups = append(g.SecurityGroups, strings.Repeat("x", 30))
	}
	now := source(g, choices, img, userdata.Properties(script))
	for key, value := range record(now) {
		if len(value) > metadataLimit || len(key) > metadataLimit {
			t.Errorf("%s has %d characters", key, len(value))
		}
	}
	if d := made(record(now), true).startedFrom("m1.large").Differences(now); len(d) > 0 {
		t.Errorf("%v", d)
	}
}
