package launchtemplate

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

func rendered(t *testing.T, token string) []byte {
	t.Helper()
	out, err := userdata.Render(userdata.Spec{Cloud: "aws", KubernetesVersion: "v1.36.3", Reservation: userdata.DefaultReservation(), Join: joinWith(token)})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func joinWith(token string) userdata.Join {
	return userdata.Join{Endpoint: "api:6443", Token: token, CACertHashes: []string{"sha256:" + strings.Repeat("0a", 32)}}
}

const first, second = "asa000.0123456789abcdef", "asa001.0123456789abcdef"

func TestDecide(t *testing.T) {
	one, two := rendered(t, first), rendered(t, second)
	all := []version{{number: 1, standard: true, userData: one}, {number: 2, own: true, userData: one}, {number: 3, own: true, userData: one}, {number: 4, own: true, userData: one}}
	for name, c := range map[string]struct {
		versions   []version
		references []reference
		join       userdata.Join
		keep       int
		source     int64
		remove     []int64
		strays     []string
		fault      string
	}{
		"as it should be":        {versions: all, join: joinWith(first), keep: 3},
		"another token":          {versions: all, join: joinWith(second), keep: 3, source: 4, remove: []int64{2}},
		"one is kept":            {versions: all, join: joinWith(second), keep: 1, source: 4, remove: []int64{4, 3, 2}},
		"too many":               {versions: all, join: joinWith(first), keep: 2, remove: []int64{2}},
		"in another order":       {versions: []version{all[2], all[0], all[3], all[1]}, join: joinWith(second), keep: 2, source: 4, remove: []int64{3, 2}},
		"named by number":        {versions: all, references: []reference{{"pinned", "2"}}, join: joinWith(second), keep: 1, source: 4, remove: []int64{4, 3}, strays: []string{"pinned (2)"}},
		"a machine is of it":     {versions: []version{all[0], {number: 2, own: true, started: true, userData: one}, all[2], all[3]}, join: joinWith(second), keep: 1, source: 4, remove: []int64{4, 3}},
		"the default":            {versions: []version{{number: 1, userData: one}, {number: 2, own: true, standard: true, userData: one}}, join: joinWith(second), keep: 1, source: 2},
		"groups that follow":     {versions: all, references: []reference{{"a", "$Latest"}}, join: joinWith(first), keep: 3},
		"groups that do not":     {versions: all, references: []reference{{"b", "$Default"}, {"a", ""}}, join: joinWith(first), keep: 3, strays: []string{"a ($Default)", "b ($Default)"}},
		"a person's newer one":   {versions: append(slices.Clone(all), version{number: 5, userData: one}), join: joinWith(second), keep: 2, source: 5, remove: []int64{3, 2}},
		"no version":             {join: joinWith(first), keep: 1, fault: "no version"},
		"somebody's user data":   {versions: []version{{number: 7, userData: []byte("#!/bin/sh\n")}}, join: joinWith(first), keep: 1, fault: "version 7 has no user data"},
		"compressed as a whole":  {versions: []version{{number: 7, userData: []byte{0x1f, 0x8b, 8, 0xff}}}, join: joinWith(first), keep: 1, fault: "compressed as a whole"},
		"nearly too much for it": {versions: []version{{number: 7, userData: append(bytes.Clone(one), bytes.Repeat([]byte("#"), 16384-len(one))...)}}, join: joinWith(second), keep: 1, source: 7},
		"too much for EC2":       {versions: []version{{number: 7, userData: append(bytes.Clone(one), bytes.Repeat([]byte("#"), 16384-len(one)+1)...)}}, join: joinWith(second), keep: 1, fault: "EC2 takes 16384"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := decide(c.versions, c.references, c.join, c.keep, nil)
			if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Fatalf("%v, want %q", err, c.fault)
			}
			if err != nil {
				return
			}
			if out.source != c.source || !slices.Equal(out.remove, c.remove) || !slices.Equal(out.strays, c.strays) {
				t.Errorf("source %d, remove %v, strays %v", out.source, out.remove, out.strays)
			}
			if c.source != 0 && !bytes.Contains(out.userData, []byte(second)) || c.source == 4 && !bytes.Equal(out.userData, two) {
				t.Error("the user data is not that of the new token")
			}
		})
	}
}

// TestDecideForEver: over a thousand rotations and changes by persons the newest version has
// the newest token, a person's versions stay, and of the agent's never more than keep do, beside
// the default one and those that are named.
func TestDecideForEver(t *testing.T) {
	seed := drawn.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	keep := 1 + rng.IntN(4)
	versions := []version{{number: 1, standard: true, userData: rendered(t, first)}}
	persons, tokens := 1, []string{first, second}
	for n := range 1000 {
		join := joinWith(tokens[rng.IntN(2)])
		var names []reference
		switch rng.IntN(6) {
		case 0: // a person makes a version of the newest
			v := slices.MaxFunc(versions, func(a, b version) int { return int(a.number - b.number) })
			v.number, v.own, v.standard = v.number+1, false, false
			versions, persons = append(versions, v), persons+1
		case 1:
			k := rng.IntN(len(versions))
			for i := range versions {
				versions[i].standard = i == k
			}
		case 2:
			names = append(names, reference{"g", "1"})
		}
		out, err := decide(versions, names, join, keep, nil)
		if err != nil {
			t.Fatal(err)
		}
		latest := slices.MaxFunc(versions, func(a, b version) int { return int(a.number - b.number) })
		if out.source != 0 {
			latest = version{number: latest.number + 1, own: true, userData: out.userData}
			versions = append(versions, latest)
		}
		versions = slices.DeleteFunc(versions, func(v version) bool { return slices.Contains(out.remove, v.number) })
		own, others := 0, 0
		for _, v := range versions {
			if v.own && !v.standard {
				own++
			}
			if !v.own {
				others++
			}
		}
		if !bytes.Contains(latest.userData, []byte(join.Token)) || own > keep || others != persons || !slices.ContainsFunc(versions, func(v version) bool { return v.number == latest.number }) {
			t.Fatalf("round %d: %d of the agent's, %d of persons (%d), latest %d", n, own, others, persons, latest.number)
		}
	}
}
