package userdata

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestSpecOf: in each format, cloud and way to a token, what was rendered tells its Spec, and that renders the
// same bytes; for another version of Kubernetes it renders what the flags would.
func TestSpecOf(t *testing.T) {
	hooked := rich()
	hooked.BeforeJoin, hooked.AfterJoin = []byte("#!/bin/sh\necho '# Rendered with: {}'"), []byte("#!/bin/sh\ntrue\n\n")
	odd := sample()
	odd.Labels = map[string]string{"a": "b"}
	odd.Proxy = Proxy{HTTPS: "http://proxy.example.net:3128", No: []string{"10.0.0.0/8"}}
	pinned := sample()
	pinned.Downloads = Downloads{Containerd: "v9.8.7", Crictl: "v1.36.0", SHA256: map[string]string{"containerd/amd64": strings.Repeat("1", 64), "containerd/arm64": strings.Repeat("2", 64)}}
	store := sample()
	store.InstanceStore, store.ImageRepository, store.IgnorePreflight, store.ExternalCloudProvider = "raid0", "registry.example.net/k8s", []string{"Swap"}, true
	perServer := sample()
	perServer.Cloud, perServer.Join.Token = "openstack", TokenPlaceholder
	for name, s := range map[string]Spec{"plain": sample(), "rich": rich(), "hooks": hooked, "proxy": odd, "pins": pinned, "disks": store, "attested": attested(t), "a token for each server": perServer} {
		for _, format := range Formats() {
			t.Run(name+" "+format, func(t *testing.T) {
				s := s
				s.Format = format
				if format == "ignition" {
					s.System = "flatcar"
				}
				first := rendered(t, s)
				again, err := SpecOf(first)
				if err != nil {
					t.Fatal(err)
				}
				if got := rendered(t, again); !bytes.Equal(got, first) {
					t.Fatalf("rendered anew it is another one; settings %+v", again)
				}
				s = s.For("v1.35.6")
				if got := rendered(t, again.For("v1.35.6")); !bytes.Equal(got, rendered(t, s)) {
					t.Errorf("for another version it is not what the same flags make")
				}
			})
		}
	}
}

// TestEverySettingIsTold: a field of Spec that the script does not tell is in the settings, or user data for another version
// would lose it.
func TestEverySettingIsTold(t *testing.T) {
	elsewhere := map[string]string{
		"Format": "the first bytes", "KubernetesVersion": "the line before", "APIServerVersion": "the cluster's at the time", "Join": "the join section",
		"BeforeJoin": "the script", "AfterJoin": "the script", "SHA256": "the script", "Table": "the release's, and SHA256",
	}
	told := settingsOf(Spec{})
	look := func(typ reflect.Type, set func(i int) Spec) {
		for i := range typ.NumField() {
			if name := typ.Field(i).Name; elsewhere[name] == "" && name != "Downloads" && settingsOf(set(i)) == told {
				t.Errorf("%s.%s is not told", typ.Name(), name)
			}
		}
	}
	look(reflect.TypeFor[Spec](), func(i int) Spec {
		var s Spec
		fill(reflect.ValueOf(&s).Elem().Field(i))
		return s
	})
	look(reflect.TypeFor[Downloads](), func(i int) Spec {
		var s Spec
		fill(reflect.ValueOf(&s.Downloads).Elem().Field(i))
		return s
	})
	look(reflect.TypeFor[Proxy](), func(i int) Spec {
		var s Spec
		fill(reflect.ValueOf(&s.Proxy).Elem().Field(i))
		return s
	})
}

// fill sets a value to one that is not its zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64:
		v.SetInt(7)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x"), reflect.ValueOf("y"))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).Kind() != reflect.Map || v.Field(i).Type().Elem().Kind() == reflect.String {
				fill(v.Field(i))
			}
		}
	}
}

// TestSpecOfWithJoin: join values that were changed in place are the ones that are read.
func TestSpecOfWithJoin(t *testing.T) {
	join := Join{Endpoint: "10.9.8.7:6443", Token: "asa003.fedcba9876543210", CACertHashes: []string{"sha256:" + strings.Repeat("1", 64)}}
	changed, err := WithJoin(rendered(t, rich()), join)
	if err != nil {
		t.Fatal(err)
	}
	s, err := SpecOf(changed)
	if err != nil || s.Join.Endpoint != join.Endpoint || s.Join.Token != join.Token || s.Join.CACertHashes[0] != join.CACertHashes[0] {
		t.Errorf("%+v, %v", s.Join, err)
	}
}

// TestSpecOfOthers: user data without settings, of a newer release, and cut is told apart; none is guessed.
func TestSpecOfOthers(t *testing.T) {
	own := rendered(t, func() Spec { s := sample(); s.Cloud = "openstack"; return s }()) // plain text
	line := settingsLine.Find(own)
	first, _, _ := bytes.Cut(line, []byte(settingsBegin))
	for name, c := range map[string]struct {
		text []byte
		want string
		none bool
	}{
		"an older release":  {bytes.Replace(own, line, first, 1), "does not tell what it was rendered with", true},
		"a newer release":   {bytes.Replace(own, []byte(`{"cloud"`), []byte(`{"moon":1,"cloud"`), 1), `unknown field "moon"`, false},
		"no JSON":           {bytes.Replace(own, []byte(`{"cloud"`), []byte(`{cloud`), 1), "its settings cannot be read", false},
		"in another place":  {bytes.Replace(bytes.Replace(own, line, first, 1), []byte("set -eu\n# --- functions"), append(append([]byte("set -eu\n"), bytes.TrimPrefix(line, first)...), "# --- functions"...), 1), "does not tell", true},
		"by hand":           {[]byte("#!/bin/sh\nkubeadm join\n"), "no join section", false},
		"without a machine": {nil, "no join section", false},
	} {
		_, err := SpecOf(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrNoSettings) != c.none {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if a, b := digest(own), digest(bytes.Replace(own, line, first, 1)); a != b {
		t.Errorf("the settings alone make another digest: %s, %s", a, b)
	}
}

// FuzzSpecOf: settings that somebody changed never reach the script past Render's checks.
func FuzzSpecOf(f *testing.F) {
	s := sample()
	s.Cloud, s.Taints = "openstack", []cluster.Taint{{Key: "a", Effect: "NoSchedule"}}
	own, err := Render(s)
	if err != nil {
		f.Fatal(err)
	}
	line := settingsLine.FindSubmatch(own)
	f.Add(string(line[2]))
	f.Add(`{"cloud":"openstack","labels":{"x\n# Rendered with: y":"$(id)"},"reservation":{"maxPods":1}}`)
	f.Fuzz(func(t *testing.T, text string) {
		spec, err := SpecOf(bytes.Replace(own, line[2], []byte(text), 1))
		if err != nil {
			return
		}
		out, err := Render(spec)
		if err != nil {
			return
		}
		if again, err := SpecOf(out); err != nil {
			t.Fatalf("what Render takes is not read back: %v", err)
		} else if b, err := Render(again); err != nil || !bytes.Equal(b, out) {
			t.Fatalf("not the same once more: %v", err)
		}
	})
}
