package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

// Spec is what the cloud starts an instance from, by the name of the property: "image",
// "user data", "instance type", "security groups" and so on, in the words of docs/scaling-rules.md.
// A value is compared as text, so that a provider writes lists sorted, and user data as a
// digest without what changes from one join to the next (tokens, certificate hashes). A
// property that the provider does not know has no entry. Instances that were started from
// the same source share one map.
type Spec map[string]string

// The properties that more than one package names.
const (
	PropertyUserData   = "user data"
	PropertyKubernetes = "Kubernetes version"
	PropertyKubelet    = "kubelet" // the version of a Node's kubelet
)

// Unset is the value of a property that the source does not set. It is told, so that a source
// that no longer sets a property differs from one that did.
const Unset = "none"

// Difference is one property in which an instance is not what its group would start today.
type Difference struct {
	Property string `json:"property"`
	Is       string `json:"is"`
	Wanted   string `json:"wanted"`
}

// Differences lists, sorted by name, the properties that both specs tell and in which they
// differ. A property that one of them does not tell is no difference: nothing goes for what
// is not known. Several wanted values with "|" between them are a choice.
func (s Spec) Differences(wanted Spec) []Difference {
	var out []Difference
	for name, value := range wanted {
		is, told := s[name]
		if told && is != value && !isChoice(value, is) {
			out = append(out, Difference{name, is, value})
		}
	}
	slices.SortFunc(out, func(a, b Difference) int { return strings.Compare(a.Property, b.Property) })
	return out
}

// Is tells that an instance is what its group starts today: it tells every property that is wanted, and differs in none. It costs the
// properties.
func (s Spec) Is(wanted Spec) bool {
	for name, value := range wanted {
		if is, told := s[name]; !told || is != value && !isChoice(value, is) {
			return false
		}
	}
	return len(wanted) > 0
}

// Like is a spec with the choices of another one in place of what was chosen of them: machines of one source are in several subnets.
func (s Spec) Like(wanted Spec) Spec {
	out := maps.Clone(s)
	for name, value := range wanted {
		if is, told := s[name]; told && isChoice(value, is) {
			out[name] = value
		}
	}
	return out
}

// Digest names a source in few letters.
func (s Spec) Digest() string {
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(s)) {
		h.Write([]byte(key + "\x00" + s[key] + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil)[:4])
}

// isChoice tells that one of the values with "|" between them is the value.
func isChoice(values, value string) bool {
	for one := range strings.SplitSeq(values, "|") {
		if one == value {
			return true
		}
	}
	return false
}
