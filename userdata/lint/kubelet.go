package lint

import (
	_ "embed"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/lazyregexp"
	"github.com/autoscaler-agent/autoscaler-agent/internal/nodespec"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/lint/internal/yaml11"
)

//go:embed kubelet.txt
var kubeletText string

// kubeletFlag is the kind of a flag's value (test/cmd/kubelettables has the kinds), with the first and the last minor whose kubelet
// knows it.
type kubeletFlag struct {
	kind        string
	first, last int
}

// joinFlag is a flag of kubeadm join: "value" or "switch", and whether it goes beside --config.
type joinFlag struct {
	kind   string
	beside bool
}

// tables are what kubelet.txt holds.
type tables struct {
	flags  map[string]kubeletFlag
	joins  map[string]joinFlag
	fields map[string]map[string]string // kinds, by kubeadm's API version and the path in a JoinConfiguration
}

var kubeletTables = sync.OnceValue(func() tables {
	t := tables{map[string]kubeletFlag{}, map[string]joinFlag{}, map[string]map[string]string{}}
	for line := range strings.Lines(kubeletText) {
		switch w := strings.Fields(line); w[0] {
		case "flag":
			f := kubeletFlag{kind: w[2]}
			_, _ = fmt.Sscanf(w[3], "%d-%d", &f.first, &f.last) // a test reads the whole table
			t.flags[w[1]] = f
		case "join":
			t.joins[w[1]] = joinFlag{w[2], w[3] == "beside"}
		case "field":
			if t.fields[w[1]] == nil {
				t.fields[w[1]] = map[string]string{}
			}
			t.fields[w[1]][w[2]] = w[3]
		}
	}
	return t
})

// kubeletArgument judges one flag of a kubelet, once the version of the kubelet is known.
func (l *linter) kubeletArgument(name, value string, line int) {
	if open(name) {
		return
	}
	name = strings.ReplaceAll(name, "_", "-") // as the kubelet does
	refuse := func(format string, args ...any) {
		l.add(NoEffect, true, line, "the kubelet ends: "+format, args...)
	}
	l.seen.later = append(l.seen.later, func() {
		switch known, ok := kubeletTables().flags[name]; {
		case !ok:
			refuse("no version from 1.%d to 1.%d knows --%s: leave it out", userdata.OldestMinor, userdata.NewestMinor, name)
		case l.seen.kubelet < userdata.OldestMinor || l.seen.kubelet > userdata.NewestMinor:
		case l.seen.kubelet < known.first:
			refuse("1.%d knows no --%s, which came with 1.%d", l.seen.kubelet, name, known.first)
		case l.seen.kubelet > known.last:
			refuse("1.%d knows no --%s, and 1.%d was the last that did: leave it out", l.seen.kubelet, name, known.last)
		}
	})
	if why := badValue(kubeletTables().flags[name].kind, value); why != "" && !open(value) {
		refuse("--%s %s", name, why)
	}
	switch name {
	case "cloud-provider":
		if value != "" && value != "external" && !open(value) {
			refuse("it has no cloud provider of its own since 1.27: use external with a cloud controller manager, or leave it out")
		}
	case "provider-id", "node-ip":
		if ip, err := netip.ParseAddr(value); value != "" && !open(value) && (name == "provider-id" || err == nil && !ip.IsUnspecified()) {
			l.add(OneName, true, line, "--%s gives every machine %s: only one of them can be that: leave it out, or take it from the machine's metadata", name, value)
		}
	case "hostname-override":
		l.nodeName(value, "--hostname-override", line)
	case "node-labels":
		for pair := range strings.SplitSeq(value, ",") {
			if key, _, _ := strings.Cut(strings.TrimSpace(pair), "="); !open(key) && userdata.ReservedLabel(key) {
				refuse("it may not set the label %s on its own Node: use a key outside kubernetes.io and k8s.io, or label the group's Nodes from the control plane", key)
			}
		}
	case "register-with-taints":
		for taint := range strings.SplitSeq(value, ",") {
			if _, err := nodespec.ParseTaint(taint); err != nil && taint != "" && !open(taint) {
				refuse("%v", err)
			}
		}
	}
}

// badValue says why a value is none of its flag's kind, as the kubelet's flag library reads it; empty: it is one.
func badValue(kind, value string) string {
	var err error
	switch kind {
	case "bool":
		_, err = strconv.ParseBool(value)
	case "int":
		_, err = strconv.ParseInt(value, 0, 64)
	case "uint":
		_, err = strconv.ParseUint(value, 0, 64)
	case "float":
		_, err = strconv.ParseFloat(value, 64)
	case "duration":
		_, err = time.ParseDuration(value)
	case "map", "bools":
		for pair := range strings.SplitSeq(value, ",") {
			_, v, ok := strings.Cut(pair, "=")
			if _, err := strconv.ParseBool(strings.TrimSpace(v)); pair != "" && (!ok || kind == "bools" && err != nil) {
				return fmt.Sprintf("has %q where a name, = and %s belong", pair, map[string]string{"map": "a value", "bools": "true or false"}[kind])
			}
		}
	}
	if err != nil {
		return fmt.Sprintf("wants %s, and %q is none", map[string]string{"bool": "true or false", "int": "a whole number", "uint": "a whole number from 0", "float": "a number", "duration": "a duration (10s)"}[kind], value)
	}
	return ""
}

var (
	kubeletVariable = lazyregexp.New(`\bKUBELET_[A-Z_]*(?:ARGS|OPTS|FLAGS)\+?=`)
	kubeletCommand  = lazyregexp.New(`^(?:ExecStart=[-@:+!]*|sudo |exec )?(?:/\S*/)?kubelet[ \t]+--`)
	flagWord        = lazyregexp.New(`^--([A-Za-z0-9._-]+)(?:=(.*))?$`)
)

// kubeletArguments judges the flags that a script or a file gives to a kubelet, in its command line
// or in one of the variables that its unit reads.
func (l *linter) kubeletArguments(text string) {
	if !strings.Contains(text, "--") {
		return
	}
	whole, begin, n := "", 0, 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if whole == "" {
			begin = n
		}
		if part, more := strings.CutSuffix(line, `\`); more {
			whole += part + " "
			continue
		}
		whole += line
		if !strings.HasPrefix(whole, "#") {
			if m := kubeletCommand.FindStringIndex(whole); m != nil {
				l.kubeletWords(whole[m[1]-2:], begin)
			}
			for _, m := range kubeletVariable.FindAllStringSubmatchIndex(whole, -1) {
				l.kubeletWords(quotedPart(whole[:m[0]], whole[m[1]:]), begin)
			}
		}
		whole = ""
	}
}

// quotedPart is the beginning of a text up to the quote that ends the word in which it stands.
func quotedPart(before, text string) string {
	if text != "" && strings.ContainsRune(`"'`, rune(text[0])) {
		inside, _, _ := strings.Cut(text[1:], text[:1])
		return inside
	}
	for _, quote := range []string{"'", `"`} {
		if strings.Count(before, quote)%2 == 1 {
			text, _, _ = strings.Cut(text, quote)
		}
	}
	return text
}

func (l *linter) kubeletWords(text string, line int) {
	words := strings.Fields(text)
	for i, w := range words {
		if strings.ContainsAny(w[:1], ";&|>") || w == "kubeadm" {
			return
		}
		m := flagWord.FindStringSubmatch(strings.Trim(w, `"';`))
		if m == nil {
			continue
		}
		value := m[2]
		switch {
		case strings.Contains(w, "="):
		case kubeletTables().flags[strings.ReplaceAll(m[1], "_", "-")].kind == "bool":
			value = "true" // such a flag takes no word after it
		case i+1 < len(words):
			value = words[i+1]
		}
		l.kubeletArgument(m[1], strings.Trim(value, `"'`), line)
	}
}

// joinFields judges the fields of a JoinConfiguration by kubeadm's own types.
func (l *linter) joinFields(root *yaml.Node) {
	version := yaml11.Get(root, "apiVersion")
	if version == nil {
		return
	}
	api := strings.TrimPrefix(version.Value, "kubeadm.k8s.io/")
	if kinds := kubeletTables().fields[api]; kinds != nil {
		l.field(joinTypes{api, kinds}, "", root)
	}
}

type joinTypes struct {
	api   string
	kinds map[string]string // by path; items of a list have [] behind the path, those of a map {}
}

func (l *linter) field(t joinTypes, path string, n *yaml.Node) {
	n = yaml11.Target(n)
	want, is := t.kinds[path], jsonKind(n)
	if path == "" {
		want = "object"
	}
	fits := want == is || want == "duration" && is == "string" || (want == "object" || want == "map") && is == "mapping"
	switch {
	case want == "":
		l.add(API, false, n.Line, "JoinConfiguration: %s has no field %s, and kubeadm ignores it", t.api, path)
	case want == "any" || is == "null" || is == "string" && open(n.Value):
	case !fits:
		l.add(API, true, n.Line, "JoinConfiguration: %s is %s, and kubeadm does not read the file: %s has %s there", path, article(is), t.api, t.describe(path))
	case want == "duration":
		if why := badValue(want, n.Value); why != "" {
			l.add(API, true, n.Line, "JoinConfiguration: %s %s, and kubeadm does not read the file", path, why)
		}
	case want == "object" || want == "map":
		kept, _ := yaml11.Fields(n)
		for _, f := range kept {
			inner := path + "{}"
			if want == "object" {
				inner = strings.TrimPrefix(path+"."+f.Name, ".")
			}
			l.field(t, inner, f.Value)
		}
	case want == "list":
		for _, item := range n.Content {
			l.field(t, path+"[]", item)
		}
	}
}

// describe says what belongs to a path.
func (t joinTypes) describe(path string) string {
	switch want := t.kinds[path]; {
	case want == "list" && t.kinds[path+"[]"] == "object":
		var names []string
		for _, p := range slices.Sorted(maps.Keys(t.kinds)) {
			if name, ok := strings.CutPrefix(p, path+"[]."); ok {
				names = append(names, name)
			}
		}
		return "a list of items with " + strings.Join(names, " and ")
	case want == "map":
		return "a mapping of names to values"
	case want == "string":
		return "a string: put it in quotes"
	case want == "duration":
		return "a duration in quotes (\"10s\")"
	default:
		return article(want)
	}
}

func article(kind string) string {
	if kind == "integer" || kind == "object" {
		return "an " + kind
	}
	return "a " + kind
}

// jsonKind is what a node is in the JSON that kubeadm makes of YAML.
func jsonKind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "mapping"
	case yaml.SequenceNode:
		return "list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "null"
	case "!!int":
		return "integer"
	case "!!float":
		return "number"
	case "!!bool":
		return "boolean"
	}
	return "string"
}

// registration judges what a JoinConfiguration gives to the kubelet.
func (l *linter) registration(root *yaml.Node) {
	r := yaml11.Get(root, "nodeRegistration")
	if r == nil {
		return
	}
	if n := yaml11.Get(r, "name"); n != nil {
		l.nodeName(n.Value, "nodeRegistration.name", n.Line)
	}
	if n := yaml11.Get(r, "criSocket"); n != nil {
		if why := badSocket(n.Value); why != "" {
			l.add(JoinInfo, true, n.Line, "JoinConfiguration: nodeRegistration.criSocket %s", why)
		}
	}
	if args := yaml11.Get(r, "kubeletExtraArgs"); args != nil && args.Kind == yaml.SequenceNode {
		for _, item := range args.Content {
			if name, value := yaml11.Get(item, "name"), yaml11.Get(item, "value"); name != nil && value != nil {
				l.kubeletArgument(name.Value, value.Value, item.Line)
			}
		}
	} else if args != nil {
		kept, _ := yaml11.Fields(args)
		for _, f := range kept {
			l.kubeletArgument(f.Name, f.Value.Value, f.Key.Line)
		}
	}
	if taints := yaml11.Get(r, "taints"); taints != nil {
		for _, item := range taints.Content {
			text := func(name string) string {
				if n := yaml11.Get(item, name); n != nil {
					return n.Value
				}
				return ""
			}
			t := cluster.Taint{Key: text("key"), Value: text("value"), Effect: text("effect")}
			if err := nodespec.Taint(t); err != nil && !open(t.Key+t.Value+t.Effect) {
				l.add(NoEffect, true, item.Line, "the kubelet ends: nodeRegistration.taints: %v", err)
			}
		}
	}
}

var machineName = lazyregexp.New(`^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$`)

// fixedName leaves out what is filled in at boot: variables, templates, and capitals that a program replaces.
func fixedName(name string) bool {
	return !open(name) && machineName.MatchString(name) && strings.ToUpper(name) != name
}

// nodeName judges the name under which a machine joins.
func (l *linter) nodeName(name, where string, line int) {
	switch {
	case fixedName(name):
		l.add(OneName, true, line, "%s names every machine %s: the second one does not join, or takes the first one's Node; leave it out, or take the name from the machine's metadata", where, name)
	case open(name):
		l.seen.ownName = true
	}
}

// hostName judges the name of a machine, under which it joins where it is given no other one.
func (l *linter) hostName(name, where string, line int) {
	if !fixedName(name) {
		return
	}
	l.seen.later = append(l.seen.later, func() {
		l.add(OneName, !l.seen.ownName, line, "%s names every machine %s: the second one does not join, or takes the first one's Node; leave it to the cloud, or take the name from the machine's metadata", where, name)
	})
}
