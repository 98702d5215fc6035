package upgrade

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

func render(t *testing.T, version string, edit func(*userdata.Spec)) []byte {
	t.Helper()
	s := userdata.Spec{Cloud: "aws", KubernetesVersion: version, Reservation: userdata.DefaultReservation(), Labels: map[string]string{"example.net/pool": "batch"},
		Join: userdata.Join{Endpoint: "api:6443", Token: "asa000.0123456789abcdef", CACertHashes: []string{"sha256:" + strings.Repeat("0a", 32)}}}
	if edit != nil {
		edit(&s)
	}
	out, err := userdata.Render(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func withoutSettings(text []byte) []byte {
	var out [][]byte
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte("# Rendered with: ")) {
			out = append(out, line)
		}
	}
	return bytes.Join(out, nil)
}

func TestOf(t *testing.T) {
	plain := func(s *userdata.Spec) { s.Cloud = "openstack" } // is not compressed
	one := []Leader{{"cp-1", "v1.36.3"}}
	unknown := strings.Repeat("c", 64)
	for name, c := range map[string]struct {
		cluster Cluster
		text    []byte
		to, why string
	}{
		"another minor":              {Cluster{Minor, "v1.36.3", one}, render(t, "v1.35.2", nil), "v1.36.3", ""},
		"three leaders":              {Cluster{Minor, "v1.36.3", []Leader{{"cp-1", "v1.36.3"}, {"cp-2", "v1.36.0"}, {"cp-3", "v1.36.3"}}}, render(t, "v1.35.2", nil), "v1.36.3", ""},
		"a leader is not done":       {Cluster{Minor, "v1.36.3", []Leader{{"cp-2", "v1.35.2"}, {"cp-1", "v1.36.3"}}}, render(t, "v1.35.2", nil), "", "the kubelet of cp-2 has v1.35.2"},
		"a leader without a kubelet": {Cluster{Minor, "v1.36.3", []Leader{{"cp-2", ""}}}, render(t, "v1.35.2", nil), "", "the kubelet of cp-2 has none"},
		"no leader is a Node":        {Cluster{Minor, "v1.36.3", nil}, render(t, "v1.35.2", nil), "v1.36.3", ""},
		"a distribution's name":      {Cluster{Minor, "v1.36.3+rke2r1", []Leader{{"cp-1", "v1.36.3+rke2r1"}}}, render(t, "v1.35.2", nil), "v1.36.3", ""},
		"four minors":                {Cluster{Minor, "v1.36.3", one}, render(t, "v1.32.0", nil), "v1.36.3", ""},
		"a patch is not followed":    {Cluster{Minor, "v1.36.3", one}, render(t, "v1.36.0", nil), "", ""},
		"a patch is followed":        {Cluster{Patch, "v1.36.3", one}, render(t, "v1.36.0", nil), "v1.36.3", ""},
		"a leader lacks the patch":   {Cluster{Patch, "v1.36.3", []Leader{{"cp-1", "v1.36.2"}}}, render(t, "v1.36.0", nil), "", "cp-1 has v1.36.2"},
		"done":                       {Cluster{Patch, "v1.36.3", one}, render(t, "v1.36.3", nil), "", ""},
		"not back":                   {Cluster{Patch, "v1.36.0", []Leader{{"cp-1", "v1.36.0"}}}, render(t, "v1.36.3", nil), "", ""},
		"newer than the API server":  {Cluster{Minor, "v1.35.2", one}, render(t, "v1.36.3", nil), "", "newer than the API server"},
		"off":                        {Cluster{Off, "v1.36.3", one}, render(t, "v1.33.0", nil), "", ""},
		"off, and by hand":           {Cluster{Off, "v1.36.3", one}, []byte("#!/bin/sh\n"), "", ""},
		"off, and too old":           {Cluster{Off, "v1.36.3", one}, render(t, "v1.32.0", nil), "", "4 minors older than the API server (v1.36.3): Kubernetes allows 3"},
		"off, and too new":           {Cluster{Off, "v1.35.2", one}, render(t, "v1.36.3", nil), "", "newer than the API server"},
		"off, and the same minor":    {Cluster{Off, "v1.36.3", one}, render(t, "v1.36.0", nil), "", ""},
		"nothing is known":           {Cluster{Minor, "", one}, render(t, "v1.35.2", nil), "", ""},
		"not final":                  {Cluster{Minor, "v1.36.0-rc.1", one}, render(t, "v1.35.2", nil), "", "v1.36.0-rc.1 is no release"},
		"not final, and off":         {Cluster{Off, "v1.36.0-rc.1", one}, render(t, "v1.35.2", nil), "", ""},
		"by hand":                    {Cluster{Minor, "v1.36.3", one}, []byte("#!/bin/sh\nkubeadm join\n"), "", "not the agent's own"},
		"an older release":           {Cluster{Minor, "v1.36.3", one}, withoutSettings(render(t, "v1.35.2", plain)), "", "does not tell what it was rendered with"},
		"somebody changed it":        {Cluster{Minor, "v1.36.3", one}, bytes.Replace(render(t, "v1.35.2", plain), []byte("# Rendered with: {"), []byte("# Rendered with: {{"), 1), "", "cannot be read"},
		"not Kubernetes' own minor":  {Cluster{Minor, "v1.37.0", []Leader{{"cp-1", "v1.37.0"}}}, render(t, "v1.35.2", nil), "", "up to Kubernetes 1.36"},
		"a patch that is not known":  {Cluster{Minor, "v1.36.99", []Leader{{"cp-1", "v1.36.99"}}}, render(t, "v1.35.2", nil), "v1.36.4", ""},
		"no newer patch is known":    {Cluster{Patch, "v1.36.99", []Leader{{"cp-1", "v1.36.99"}}}, render(t, "v1.36.4", nil), "", "knows the checksums of no version between v1.36.4"},
		"checksums of the old": {Cluster{Minor, "v1.36.3", one}, render(t, "v1.35.2", func(s *userdata.Spec) {
			s.Arch, s.Downloads.SHA256 = "amd64", map[string]string{"kubelet/amd64": unknown}
		}), "v1.36.3", ""},
		"a program that does not fit": {Cluster{Minor, "v1.36.3", one}, render(t, "v1.34.1", func(s *userdata.Spec) { s.KubeadmAPIVersion = "v1beta3" }), "", "cannot be rendered for v1.36.3"},
	} {
		t.Run(name, func(t *testing.T) {
			out := c.cluster.Of(c.text)
			if out.To != c.to || (out.Text != nil) != (c.to != "") || (out.Why == "") != (c.why == "") || !strings.Contains(out.Why, c.why) || (out.Why == "") != (out.Remedy == "") {
				t.Fatalf("to %q, why %q, remedy %q; want to %q, why %q", out.To, out.Why, out.Remedy, c.to, c.why)
			}
			if out.Text == nil {
				return
			}
			held, err := userdata.Read(out.Text)
			if err != nil || held.KubernetesVersion != c.to || held.Join.Token != "asa000.0123456789abcdef" {
				t.Errorf("%+v, %v", held, err)
			}
			if strings.Contains(string(out.Text), unknown) {
				t.Error("the checksum of the old version is in the new user data")
			}
			if again := c.cluster.Of(out.Text); again.Text != nil || again.Why != "" {
				t.Errorf("once more: %q", again.Why)
			}
		})
	}
}

// TestForEver draws the versions of leaders, API server and user data: nothing that is made is newer than any leader's
// minor or than the API server, or older than what was there, and one step is enough.
func TestForEver(t *testing.T) {
	seed := drawn.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 2))
	made := 0
	for range 300 {
		draw := func() string { return fmt.Sprintf("v1.%d.%d", 33+rng.IntN(4), rng.IntN(3)) }
		c := Cluster{Mode: Modes[rng.IntN(3)], Server: draw()}
		for n := range rng.IntN(4) {
			c.Leaders = append(c.Leaders, Leader{fmt.Sprint("cp-", n), draw()})
		}
		from := draw()
		out := c.Of(render(t, from, nil))
		if out.Text == nil {
			continue
		}
		made++
		if c.Mode == Off || newerOrSame(from, out.To) || !newerOrSame(c.Server, out.To) {
			t.Fatalf("%+v: %s to %s", c, from, out.To)
		}
		for _, l := range c.Leaders {
			if !newerOrSame(l.Kubelet[:len("v1.36")]+".99", out.To) {
				t.Fatalf("%+v: %s is newer than %s", c, out.To, l.Name)
			}
		}
		if again := c.Of(out.Text); again.Text != nil {
			t.Fatalf("%+v: once more", c)
		}
	}
	if made < 20 {
		t.Errorf("%d of 300 made user data", made)
	}
}
