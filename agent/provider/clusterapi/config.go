package clusterapi

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi/capi"
)

// Config selects the node groups and the management cluster. Under
// the product's prefix its variables are AUTOSCALER_CLUSTERAPI_CLUSTER_NAME and so on.
type Config struct {
	// ClusterName is short for the rule clusterapi:clusterName=<ClusterName>: the name
	// of the Cluster object of this cluster. With Namespace, both must fit.
	ClusterName string `split_words:"true" form:"name" desc:"Name of the Cluster object of this cluster."`
	// Namespace of the objects in the management cluster.
	Namespace string `form:"namespace" desc:"Namespace of the objects in the management cluster."`
	// AutoDiscovery lists rules in Cluster Autoscaler's form. An object is a node group when
	// ANY of them matches.
	AutoDiscovery Discovery `split_words:"true" desc:"Rules that find groups, such as clusterapi:namespace=a,clusterName=b."`
	// CloudConfig is the kubeconfig of the management cluster. Empty: the management
	// cluster is the one that the agent's own kubeconfig names.
	CloudConfig string `split_words:"true" form:"file" desc:"Kubeconfig of the management cluster; empty: this cluster manages itself."`
	// CloudConfigAuthoritative never takes the agent's own kubeconfig for the management
	// cluster: with an empty CloudConfig it is the cluster of the agent's pod.
	CloudConfigAuthoritative bool `split_words:"true" default:"false" desc:"Never take the agent's own kubeconfig for the management cluster."`
	// Group is the API group, and the prefix of labels and annotations. Empty:
	// CAPI_GROUP, or else cluster.x-k8s.io.
	Group string `form:"domain" desc:"API group of Cluster API; empty: CAPI_GROUP, then cluster.x-k8s.io."`
	// Version is the version of the API. Empty: CAPI_VERSION, or else the one that the
	// management cluster prefers.
	Version string `oneof:"v1beta1,v1beta2" desc:"API version, v1beta1 or v1beta2; empty: CAPI_VERSION, then what the management cluster prefers of the two."`
	// ScaleZeroDefaultArch is the architecture of machines whose infrastructure template
	// has none. Empty: CAPI_SCALE_ZERO_DEFAULT_ARCH, or else amd64.
	ScaleZeroDefaultArch string `split_words:"true" oneof:"amd64,arm64,ppc64le,s390x" desc:"Architecture of machines whose template names none; empty: CAPI_SCALE_ZERO_DEFAULT_ARCH, then amd64."`
	// AdditionalSyncMachineLabels are Cluster API's own --additional-sync-machine-labels:
	// regular expressions of labels that reach nodes beside the three domains that do.
	AdditionalSyncMachineLabels []string `split_words:"true" form:"regexp" desc:"Patterns of more labels that Cluster API brings from Machines to Nodes."`
	// MarkLead is the time between a delete-machine mark and the write of replicas: Cluster
	// API's controllers see Machines and replicas through two watches, and a controller that
	// sees the lower replicas before the mark would delete any machine.
	MarkLead time.Duration `split_words:"true" default:"300ms" range:"0s..1m" desc:"Wait between the mark on a Machine and the lower number of replicas."`
	// Timeout limits each single call to the management cluster.
	Timeout time.Duration `default:"10s" range:"100ms..10m" desc:"Longest time of one call to the management cluster."`
}

// Discovery is a list of rules: "clusterapi:namespace=blue,clusterName=test1,key=value".
// Every part of a rule must match; one matching rule is enough.
type Discovery []string

// ruleStart finds where a rule begins: the commas inside a rule separate its parts,
// so a list of rules cannot be split at every comma.
var ruleStart = regexp.MustCompile(`(^|[\s,;])clusterapi:`)

// Decode splits the value of the environment variable into rules. They may be
// separated by white space, semicolons or commas.
func (d *Discovery) Decode(value string) error {
	*d = nil
	from := 0
	cut := func(to int) {
		if rule := strings.Trim(value[from:to], " \t\r\n,;"); rule != "" {
			*d = append(*d, rule)
		}
		from = to
	}
	for _, at := range ruleStart.FindAllStringIndex(value, -1) {
		cut(at[0])
	}
	cut(len(value))
	return nil
}

// rule is one parsed discovery rule; an empty part matches everything.
type rule struct {
	namespace, cluster string
	labels             map[string]string
}

func (r rule) matches(o *capi.Scalable) bool {
	if r.namespace != "" && r.namespace != o.Namespace || r.cluster != "" && r.cluster != o.Cluster {
		return false
	}
	for k, v := range r.labels {
		if has, ok := o.Labels[k]; !ok || has != v {
			return false
		}
	}
	return true
}

func (r rule) String() string {
	var parts []string
	if r.namespace != "" {
		parts = append(parts, "namespace="+r.namespace)
	}
	if r.cluster != "" {
		parts = append(parts, "clusterName="+r.cluster)
	}
	for k, v := range r.labels {
		parts = append(parts, k+"="+v)
	}
	slices.Sort(parts)
	return "clusterapi:" + strings.Join(parts, ",")
}

const ruleForm = "a rule looks like clusterapi:namespace=blue,clusterName=test1,owner=jim"

func parseRule(s string) (rule, error) {
	list, ok := strings.CutPrefix(s, "clusterapi:")
	if !ok {
		return rule{}, errors.New(ruleForm)
	}
	r := rule{labels: map[string]string{}}
	for part := range strings.SplitSeq(list, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		if !ok || key == "" || strings.ContainsRune(value, '=') {
			return rule{}, fmt.Errorf("%q is no key=value; %s", part, ruleForm)
		}
		switch key {
		case "namespace":
			r.namespace = value
		case "clusterName":
			r.cluster = value
		default:
			r.labels[key] = value
		}
	}
	return r, nil
}

// settings is Config completed by the environment variables of Cluster Autoscaler.
type settings struct {
	rules     []rule
	keys      keys
	version   string
	arch      string
	archGuess string // why arch differs from a variable; empty: it does not
	sync      []*regexp.Regexp
}

// archs are the values that CAPI_SCALE_ZERO_DEFAULT_ARCH may have.
var archs = []string{"amd64", "arm64", "ppc64le", "s390x"}

const defaultGroup = "cluster.x-k8s.io"

// parse reads the strings of the configuration, and CAPI_GROUP, CAPI_VERSION and
// CAPI_SCALE_ZERO_DEFAULT_ARCH for empty ones.
func (c Config) parse() (settings, error) {
	s := settings{
		keys:    keys{group: cmp.Or(c.Group, os.Getenv("CAPI_GROUP"), defaultGroup)},
		version: cmp.Or(c.Version, os.Getenv("CAPI_VERSION")),
		arch:    cmp.Or(c.ScaleZeroDefaultArch, os.Getenv("CAPI_SCALE_ZERO_DEFAULT_ARCH"), "amd64"),
	}
	if !slices.Contains(archs, s.arch) {
		s.archGuess = fmt.Sprintf("CAPI_SCALE_ZERO_DEFAULT_ARCH is %q, which is none of %s: amd64 is assumed", s.arch, strings.Join(archs, ", "))
		s.arch = "amd64"
	}
	var errs []error
	if alpha.MatchString(s.version) {
		variable := "CAPI_VERSION"
		if c.Version != "" {
			variable = "AUTOSCALER_CLUSTERAPI_VERSION"
		}
		errs = append(errs, fmt.Errorf("%s: %q: the objects of v1alpha3 and v1alpha4 are not read: write %s, or leave it empty; a management cluster without them needs a newer Cluster API (clusterctl upgrade)", variable, s.version, strings.Join(contracts, " or ")))
	}
	if c.ClusterName != "" || c.Namespace != "" {
		s.rules = append(s.rules, rule{namespace: c.Namespace, cluster: c.ClusterName})
	}
	for _, text := range c.AutoDiscovery {
		r, err := parseRule(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("AUTOSCALER_CLUSTERAPI_AUTO_DISCOVERY: %q: %w", text, err))
			continue
		}
		s.rules = append(s.rules, r)
	}
	for _, text := range c.AdditionalSyncMachineLabels {
		re, err := regexp.Compile(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("AUTOSCALER_CLUSTERAPI_ADDITIONAL_SYNC_MACHINE_LABELS: %q: %w", text, err))
			continue
		}
		s.sync = append(s.sync, re)
	}
	return s, errors.Join(errs...)
}

// Validate returns every mistake of the configuration, joined, each with the name of
// its variable and what to write instead.
func (c Config) Validate() error {
	_, err := c.parse()
	errs := []error{err}
	if c.ClusterName == "" && c.Namespace == "" && len(c.AutoDiscovery) == 0 {
		errs = append(errs, errors.New("AUTOSCALER_CLUSTERAPI_CLUSTER_NAME: no groups are configured; set it to the name of this cluster's "+
			"Cluster object, or write rules to AUTOSCALER_CLUSTERAPI_AUTO_DISCOVERY (clusterapi: alone takes every annotated object)"))
	}
	if c.ScaleZeroDefaultArch != "" && !slices.Contains(archs, c.ScaleZeroDefaultArch) {
		errs = append(errs, fmt.Errorf("AUTOSCALER_CLUSTERAPI_SCALE_ZERO_DEFAULT_ARCH: %q: write one of %s", c.ScaleZeroDefaultArch, strings.Join(archs, ", ")))
	}
	if strings.ContainsAny(c.Group, "/: \t") {
		errs = append(errs, fmt.Errorf("AUTOSCALER_CLUSTERAPI_GROUP: %q: write an API group without a version, for example cluster.x-k8s.io", c.Group))
	}
	if strings.ContainsAny(c.Version, "/: \t") {
		errs = append(errs, fmt.Errorf("AUTOSCALER_CLUSTERAPI_VERSION: %q: write a version without its group, for example v1beta1", c.Version))
	}
	if c.MarkLead < 0 || c.MarkLead > time.Minute {
		errs = append(errs, fmt.Errorf("AUTOSCALER_CLUSTERAPI_MARK_LEAD: %q: write a duration from 0s to 1m, for example 300ms", c.MarkLead))
	}
	if c.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("AUTOSCALER_CLUSTERAPI_TIMEOUT: %q: write a duration above zero, for example 10s", c.Timeout))
	}
	return errors.Join(errs...)
}
