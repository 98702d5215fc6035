package pool

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/strict"
	"github.com/autoscaler-agent/autoscaler-agent/internal/lazyregexp"
)

// Section is the section "asg" of groups.yaml.
type Section struct {
	Pools []Pool `json:"pools"`
}

// Pool is one entry: what its machines start from, which types and places they may have, and how
// many there may be.
type Pool struct {
	Name           string            `json:"name"`           // the groups' names begin with it
	LaunchTemplate string            `json:"launchTemplate"` // ID or name
	Version        string            `json:"version"`        // of it; empty: $Latest
	Types          []string          `json:"types"`          // with * for the rest: m5.*, c6i.2xlarge
	Without        []string          `json:"without"`        // types of these that are left out
	Arch           string            `json:"arch"`           // empty: amd64
	CPU            Range             `json:"cpu"`            // vCPUs of a machine
	Memory         Range             `json:"memory"`         // GiB of a machine
	Subnets        map[string]string `json:"subnets"`        // by availability zone
	Capacity       []string          `json:"capacity"`       // on-demand (the default), spot
	Max            int               `json:"max"`            // machines of all its groups together
	Tags           map[string]string `json:"tags"`           // further tags of groups and machines
}

// Range is a least and a most; 0: none.
type Range struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// The values of Pool.Capacity.
const (
	OnDemand = "on-demand"
	Spot     = "spot"
)

var (
	nameForm   = lazyregexp.New(`\A[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?\z`)
	typeForm   = lazyregexp.New(`\A[a-z0-9*-]+(\.[a-z0-9*-]+)?\z`)
	zoneForm   = lazyregexp.New(`\A[a-z]{2,3}(-[a-z]+)+-[0-9]+(-[a-z]+-[0-9]+)?[a-z]\z`)
	subnetForm = lazyregexp.New(`\Asubnet-[0-9a-z]+\z`)
)

// Parse reads the section. The error joins every mistake, each with its place and what to write
// instead.
func Parse(raw json.RawMessage) (Section, error) {
	s, err := strict.Decode[Section](raw, "pools")
	if err != nil {
		return s, err
	}
	var errs []error
	names := map[string]bool{}
	for i := range s.Pools {
		p := &s.Pools[i]
		at := fmt.Sprintf("pools[%d]", i)
		if names[p.Name] {
			errs = append(errs, fmt.Errorf("%s.name: %q stands twice: every pool has a name of its own", at, p.Name))
		}
		names[p.Name] = true
		for _, m := range p.mistakes() {
			errs = append(errs, errors.New(at+"."+m))
		}
		p.Version, p.Arch = cmp.Or(p.Version, "$Latest"), cmp.Or(p.Arch, "amd64")
		if len(p.Capacity) == 0 {
			p.Capacity = []string{OnDemand}
		}
	}
	return s, errors.Join(errs...)
}

func (p *Pool) mistakes() (out []string) {
	bad := func(wrong bool, field, format string, args ...any) {
		if wrong {
			out = append(out, field+": "+fmt.Sprintf(format, args...))
		}
	}
	bad(!nameForm.MatchString(p.Name), "name", "%q: write at most 40 small letters, digits and dashes, for example general", p.Name)
	bad(p.LaunchTemplate == "", "launchTemplate", "name the launch template of the machines, lt-... or its name")
	bad(len(p.Types) == 0, "types", "name the instance types, for example [m5.*, c6i.2xlarge]")
	types := func(field string, list []string) {
		for i, t := range list {
			bad(!typeForm.MatchString(t), fmt.Sprintf("%s[%d]", field, i), "%q is no instance type: write m5.large, or m5.* for all sizes", t)
		}
	}
	types("types", p.Types)
	types("without", p.Without)
	bad(p.Arch != "" && p.Arch != "amd64" && p.Arch != "arm64", "arch", "%q: write amd64 or arm64", p.Arch)
	span := func(field string, r Range) {
		bad(r.Min < 0 || r.Max < 0 || r.Max > 0 && r.Max < r.Min, field, "%d to %d is no range: write a min of 0 or more, and a max that is not below it or leave it out", r.Min, r.Max)
	}
	span("cpu", p.CPU)
	span("memory", p.Memory)
	bad(len(p.Subnets) == 0, "subnets", "name a subnet for each availability zone, for example {eu-west-1a: subnet-0a1b}")
	for _, zone := range slices.Sorted(maps.Keys(p.Subnets)) {
		bad(!zoneForm.MatchString(zone), "subnets."+zone, "%q is no availability zone: write one like eu-west-1a", zone)
		bad(!subnetForm.MatchString(p.Subnets[zone]), "subnets."+zone, "%q is no subnet: write its ID, subnet-...", p.Subnets[zone])
	}
	for i, c := range p.Capacity {
		bad(c != OnDemand && c != Spot, fmt.Sprintf("capacity[%d]", i), "%q: write on-demand or spot", c)
		bad(slices.Contains(p.Capacity[:i], c), fmt.Sprintf("capacity[%d]", i), "%q stands twice", c)
	}
	bad(p.Max < 1, "max", "%d: write how many machines all groups of the pool may have together, at least 1", p.Max)
	for _, key := range slices.Sorted(maps.Keys(p.Tags)) {
		bad(strings.HasPrefix(key, "aws:") || key == Tag || len(key) > 128 || len(p.Tags[key]) > 256, "tags."+key, "a tag has at most 128 characters in its key and 256 in its value; aws:* and %s are not yours", Tag)
	}
	return out
}

// allows asks the patterns again: EC2 is not told of without.
func (p *Pool) allows(typ string) bool {
	fits := func(pattern string) bool { ok, err := path.Match(pattern, typ); return ok && err == nil }
	return slices.ContainsFunc(p.Types, fits) && !slices.ContainsFunc(p.Without, fits)
}
