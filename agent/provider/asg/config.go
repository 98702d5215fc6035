package asg

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Config defines which groups are ours and how AWS is reached. Under the product's
// prefix its variables are AUTOSCALER_AWS_REGION and so on.
type Config struct {
	// Region of the groups. Empty: what the SDK finds (AWS_REGION, the shared
	// configuration file, the instance's own region).
	Region string `split_words:"true" form:"region" desc:"AWS region; empty: what the SDK finds (AWS_REGION, the instance's own)."`
	// ClusterName is short for the two tags that Cluster Autoscaler's documents
	// recommend: k8s.io/cluster-autoscaler/enabled and
	// k8s.io/cluster-autoscaler/<ClusterName>, both of which a group must carry.
	ClusterName string `split_words:"true" form:"text" desc:"Finds groups tagged k8s.io/cluster-autoscaler/enabled and k8s.io/cluster-autoscaler/NAME."`
	// AutoDiscovery lists further discovery rules. A group is ours when ANY of them
	// matches (Cluster Autoscaler merges several into one rule that matches nothing).
	AutoDiscovery Discovery `split_words:"true" desc:"More rules that find groups, such as asg:tag=key,key=value; any of them is enough."`
	// Groups names groups one by one, as "name" or as "min:max:name".
	Groups []string `split_words:"true" form:"text" desc:"Auto Scaling groups by name, or as min:max:name, comma-separated."`
	// VMMemoryOverheadPercent is the part of an instance type's memory that the
	// hypervisor and the kernel keep from the kubelet. Karpenter's default (7.5) holds
	// until a real node of the same template has been seen.
	VMMemoryOverheadPercent float64 `split_words:"true" default:"7.5" range:"0..<100" desc:"Share of an instance type's memory that never reaches the kubelet, until a real node has shown it."`
	// SecondaryAddresses lets secondary private and IPv6 addresses, and the public ones
	// that lead to them, stand in serving certificates. Leave it off where the CNI gives
	// them to pods (AWS VPC CNI).
	SecondaryAddresses bool `split_words:"true" desc:"Whether secondary addresses may stand in certificates; not where a CNI gives them to pods."`
	// Timeout limits each single call to AWS, the SDK's one repetition included.
	Timeout time.Duration `split_words:"true" default:"10s" range:"100ms..10m" desc:"Longest time of one call to AWS."`
	// Transport carries the requests; nil: the SDK's own.
	Transport http.RoundTripper `ignored:"true"`
}

// Discovery is a list of rules as Cluster Autoscaler writes them:
// "asg:tag=key1,key2=value". All tags of one rule must be on the group; one
// matching rule is enough.
type Discovery []string

// ruleStart finds where a rule begins: the commas inside a rule separate tags, so
// a list of rules cannot be split at every comma.
var ruleStart = regexp.MustCompile(`(^|[\s,;])asg:`)

// Decode splits the value of the environment variable into rules. They may be
// separated by white space, semicolons or commas.
func (d *Discovery) Decode(value string) error {
	*d = nil
	starts := ruleStart.FindAllStringIndex(value, -1)
	if len(starts) == 0 || starts[0][0] != 0 {
		if rest := strings.TrimSpace(value); rest != "" && len(starts) == 0 {
			*d = Discovery{rest}
			return nil
		}
	}
	cut := func(from, to int) {
		if rule := strings.Trim(value[from:to], " \t\r\n,;"); rule != "" {
			*d = append(*d, rule)
		}
	}
	from := 0
	for _, at := range starts {
		cut(from, at[0])
		from = at[0]
	}
	cut(from, len(value))
	return nil
}

// tagRule is one parsed discovery rule.
type tagRule []tagMatch

type tagMatch struct {
	key, value string
	anyValue   bool
}

func (r tagRule) String() string {
	parts := make([]string, len(r))
	for i, m := range r {
		parts[i] = m.key
		if !m.anyValue {
			parts[i] += "=" + m.value
		}
	}
	return "asg:tag=" + strings.Join(parts, ",")
}

// matches reports whether tags satisfy the rule.
func (r tagRule) matches(tags map[string]string) bool {
	for _, m := range r {
		value, ok := tags[m.key]
		if !ok || !m.anyValue && value != m.value {
			return false
		}
	}
	return true
}

func parseRule(s string) (tagRule, error) {
	list, ok := strings.CutPrefix(s, "asg:tag=")
	if !ok {
		return nil, errors.New(`a rule looks like asg:tag=key1,key2=value`)
	}
	var rule tagRule
	for part := range strings.SplitSeq(list, ",") {
		key, value, hasValue := strings.Cut(strings.TrimSpace(part), "=")
		if key == "" {
			return nil, errors.New("a tag has no key; a rule looks like asg:tag=key1,key2=value")
		}
		rule = append(rule, tagMatch{key: key, value: value, anyValue: !hasValue})
	}
	return rule, nil
}

// named is one entry of Config.Groups. Bounds are -1 where the group's own hold.
type named struct {
	id       cluster.GroupID
	min, max int
}

// GroupName is the name of the group in one entry of Config.Groups.
func GroupName(entry string) (string, error) {
	n, err := parseNamed(entry)
	return string(n.id), err
}

func parseNamed(s string) (named, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return named{}, errors.New("an entry is empty; write name or min:max:name")
	}
	parts := strings.SplitN(s, ":", 3)
	if len(parts) == 1 {
		return named{id: cluster.GroupID(s), min: -1, max: -1}, nil
	}
	if len(parts) != 3 || parts[2] == "" {
		return named{}, errors.New("write name or min:max:name")
	}
	lo, err1 := strconv.Atoi(parts[0])
	hi, err2 := strconv.Atoi(parts[1])
	switch {
	case err1 != nil || lo < 0:
		return named{}, fmt.Errorf("min %q is not a whole number of machines; write name or min:max:name", parts[0])
	case err2 != nil || hi < 0:
		return named{}, fmt.Errorf("max %q is not a whole number of machines; write name or min:max:name", parts[1])
	case lo > hi:
		return named{}, fmt.Errorf("min %d is above max %d; swap them", lo, hi)
	}
	return named{id: cluster.GroupID(parts[2]), min: lo, max: hi}, nil
}

var (
	regionForm = regexp.MustCompile(`^[a-z]{2,3}(-[a-z]+)+-[0-9]+$`)
	zoneForm   = regexp.MustCompile(`^([a-z]{2,3}(-[a-z]+)+-[0-9]+)[a-z]$`)
)

// Validate returns every mistake of the configuration, joined, each with the name
// of its variable and what to write instead.
func (c Config) Validate() error {
	_, _, err := c.parse()
	errs := []error{err}
	bad := func(variable, value, format string, args ...any) {
		errs = append(errs, fmt.Errorf("AUTOSCALER_AWS_%s: %q: %s", variable, value, fmt.Sprintf(format, args...)))
	}
	if m := zoneForm.FindStringSubmatch(c.Region); m != nil {
		bad("REGION", c.Region, "this is an availability zone; write its region, %s", m[1])
	} else if c.Region != "" && !regionForm.MatchString(c.Region) {
		bad("REGION", c.Region, "this is no region; write one like eu-west-1, or leave it out on EC2")
	}
	if why := BadClusterName(c.ClusterName); why != "" {
		bad("CLUSTER_NAME", c.ClusterName, "%s", why)
	}
	if c.ClusterName == "" && len(c.AutoDiscovery) == 0 && len(c.Groups) == 0 {
		errs = append(errs, errors.New("AUTOSCALER_AWS_CLUSTER_NAME: no groups are configured; "+
			"set it (tags k8s.io/cluster-autoscaler/enabled and k8s.io/cluster-autoscaler/<name>), "+
			"or AUTOSCALER_AWS_AUTO_DISCOVERY, or AUTOSCALER_AWS_GROUPS"))
	}
	if !(c.VMMemoryOverheadPercent >= 0 && c.VMMemoryOverheadPercent < 100) {
		bad("VM_MEMORY_OVERHEAD_PERCENT", strconv.FormatFloat(c.VMMemoryOverheadPercent, 'g', -1, 64),
			"write a percentage from 0 to below 100 (7.5 unless you know better)")
	}
	if c.Timeout <= 0 {
		bad("TIMEOUT", c.Timeout.String(), "write a duration above zero, for example 10s")
	}
	return errors.Join(errs...)
}

// parse turns the strings of the configuration into rules and names.
func (c Config) parse() ([]tagRule, []named, error) {
	var (
		rules []tagRule
		names []named
		errs  []error
	)
	if c.ClusterName != "" {
		rules = append(rules, tagRule{
			{key: "k8s.io/cluster-autoscaler/enabled", anyValue: true},
			{key: "k8s.io/cluster-autoscaler/" + c.ClusterName, anyValue: true},
		})
	}
	for _, s := range c.AutoDiscovery {
		rule, err := parseRule(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("AUTOSCALER_AWS_AUTO_DISCOVERY: %q: %w", s, err))
			continue
		}
		rules = append(rules, rule)
	}
	seen := map[cluster.GroupID]bool{}
	for _, s := range c.Groups {
		n, err := parseNamed(s)
		if err == nil && seen[n.id] {
			err = errors.New("the group is named twice; keep one entry")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("AUTOSCALER_AWS_GROUPS: %q: %w", s, err))
			continue
		}
		seen[n.id] = true
		names = append(names, n)
	}
	return rules, names, errors.Join(errs...)
}
