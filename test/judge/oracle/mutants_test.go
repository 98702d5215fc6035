package oracle

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// mutant is one rule of the product, broken on purpose: in a file below agent/, every
// occurrence of each old text becomes the new one.
type mutant struct {
	feature string
	file    string
	edits   []string // old, new, old, new, ...
}

var mutants = []mutant{
	{"NodeUnschedulable: its toleration", "fit/filters.go", []string{`{Key: "node.kubernetes.io/unschedulable", Effect: noSchedule}`, `{Key: "unschedulable", Effect: noSchedule}`}},
	{"NodeName", "fit/filters.go", []string{`c.NodeName == s.Name`, `c.NodeName <= s.Name`, `c.NodeName != s.Name`, `c.NodeName > s.Name`}},
	{"taints: NoExecute counts", "fit/filters.go", []string{`"NoExecute"`, `"NoExecution"`}},
	{"taints: PreferNoSchedule does not", "fit/filters.go", []string{`"NoSchedule"`, `"PreferNoSchedule"`}},
	{"tolerations: no operator is Equal", "cluster/pod.go", []string{`(t.Operator == "" || t.Operator == "Equal")`, `t.Operator == "Equal"`}},
	{"tolerations: no effect is every effect", "cluster/pod.go", []string{`t.Effect != "" && t.Effect != taint.Effect`, `t.Effect != taint.Effect`}},
	{"tolerations: no key is every key", "cluster/pod.go", []string{`t.Key != "" && t.Key != taint.Key`, `t.Key != taint.Key`}},
	{"tolerations: Equal compares values", "cluster/pod.go", []string{`&& t.Value == taint.Value`, ``}},
	{"nodeSelector", "fit/affinity.go", []string{`!ok || got != v`, `ok && got != v`}},
	{"node affinity: NotIn without the label", "fit/affinity.go", []string{`(!has || !slices.Contains(r.Values, value))`, `has && !slices.Contains(r.Values, value)`}},
	{"node affinity: Exists", "fit/affinity.go", []string{`len(r.Values) == 0 && has`, `len(r.Values) == 0`}},
	{"node affinity: DoesNotExist", "fit/affinity.go", []string{`len(r.Values) == 0 && !has`, `len(r.Values) == 0`}},
	{"node affinity: Gt", "fit/affinity.go", []string{`got > bound`, `got >= bound`}},
	{"node affinity: Lt", "fit/affinity.go", []string{`got < bound`, `got <= bound`}},
	{"node affinity: an empty term", "fit/affinity.go", []string{"len(t.Fields) == 0 {\n\t\treturn false", "len(t.Fields) == 0 {\n\t\treturn true"}},
	{"node affinity: matchFields In", "fit/affinity.go", []string{`r.Values[0] == string(name)`, `true`}},
	{"node affinity: matchFields NotIn", "fit/affinity.go", []string{`r.Values[0] != string(name)`, `true`}},
	{"node affinity: impossible values", "observe/convert/convert.go", []string{`Operator: string(corev1.NodeSelectorOpIn)}`, `Operator: string(in[i].Operator), Values: in[i].Values}`}},
	{"ports: 0.0.0.0", "fit/dimensions.go", []string{`ip == anyAddress && strings.HasPrefix`, `false && strings.HasPrefix`}},
	{"ports: protocol", "fit/dimensions.go", []string{`"port:" + protocol + "/"`, `"port:/"`}},
	{"ports: sidecars", "observe/convert/convert.go", []string{`add(&spec.InitContainers[i])`, `_ = add`}},
	{"resources: cpu", "fit/dimensions.go", []string{`= c.Requests.MilliCPU, c.Requests.Memory`, `= 0, c.Requests.Memory`}},
	{"resources: memory", "fit/dimensions.go", []string{`= c.Requests.MilliCPU, c.Requests.Memory`, `= c.Requests.MilliCPU, 0`}},
	{"resources: ephemeral storage", "fit/dimensions.go", []string{`= c.Requests.EphemeralStorage, max`, `= 0, max`}},
	{"resources: pods", "fit/dimensions.go", []string{`max(c.Requests.Pods, 1)`, `0`}},
	{"resources: extended", "fit/dimensions.go", []string{`v[i] = c.Requests.Extended[a.name]`, `v[i] = 0`}},
	{"requests: init containers are a floor", "observe/convert/requests.go", []string{`maxList(sum, floor)`, `_ = floor`}},
	{"requests: sidecars before an init container", "observe/convert/requests.go", []string{`use := sidecars.DeepCopy()`, `use := corev1.ResourceList{}`}},
	{"requests: sidecars", "observe/convert/requests.go", []string{`addList(sum, req)`, `_ = req`}},
	{"requests: overhead", "observe/convert/requests.go", []string{`addList(sum, pod.Spec.Overhead)`, ``}},
	{"requests: pod level", "observe/convert/requests.go", []string{`name == corev1.ResourceMemory || strings`, `strings`}},
	{"requests: a resize under way", "observe/convert/requests.go", []string{`c.Resources.Requests, st.Resources.Requests, st.AllocatedResources)`, `c.Resources.Requests, st.Resources.Requests, nil)`}},
	{"ReadWriteOncePod", "fit/volumes.go", []string{`s.claims[claim] > 0`, `s.claims[claim] > 1`}},
	{"attach limits", "fit/volumes.go", []string{`)) > limit {`, `)) > limit+1 {`}},
	{"attach limits: a handle on the node counts once", "fit/volumes.go", []string{`&& s.handles[uint64(node)<<32|uint64(h)] == 0`, ``}},
	{"volume affinity", "fit/volumes.go", []string{`terms := a.volumes[i].Affinity; terms != nil &&`, `terms := a.volumes[i].Affinity; terms == nil &&`}},
	{"allowedTopologies", "fit/volumes.go", []string{`terms := a.volumes[i].Topologies; terms != nil &&`, `terms := a.volumes[i].Topologies; terms == nil &&`}},
	{"volume zones", "fit/volumes.go", []string{`return slices.ContainsFunc(z.Values`, `return len(z.Values) > 0 || slices.ContainsFunc(z.Values`}},
	{"volume zones: old labels", "fit/volumes.go", []string{`{"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"}`, `{"failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"}`}},
	{"volume zones: nodes without", "fit/volumes.go", []string{`if !zoned(shape.Labels) {`, `if false {`}},
	{"claims: those that cannot be had", "observe/volumes/demand.go", []string{`case c.deleting:`, `case false:`}},
	{"claims: immediate", "observe/volumes/demand.go", []string{`known && class.waitForConsumer`, `known`}},
	{"spread: skew", "fit/spread.go", []string{`> ask.maxSkew`, `> ask.maxSkew+1`}},
	{"spread: minDomains", "fit/spread.go", []string{`.domains < minDomains`, `.domains+1 < minDomains`}},
	{"spread: nodes without the label", "fit/spread.go", []string{`return wordsSpreadLabel`, `continue`}},
	{"spread: an empty selector counts nobody", "fit/compile.go", []string{`counted != nil && len(counted.Requirements) == 0`, `false`}},
	{"spread: the pod itself", "fit/compile.go", []string{`ask.self = 1`, `ask.self = 0`}},
	{"spread: pods that leave", "fit/state.go", []string{`!leaving && s.counts`, `s.counts`}},
	{"spread: nodeAffinityPolicy", "fit/compile.go", []string{`honor: !t.IgnoreNodeAffinity`, `honor: true`}},
	{"spread: nodeTaintsPolicy", "fit/compile.go", []string{`taints: t.HonorTaints`, `taints: false`}},
	{"spread: other constraints' keys", "fit/compile.go", []string{`eligibility{keys: sorted`, `eligibility{keys: sorted[:1]`}},
	{"spread: matchLabelKeys of today", "observe/convert/terms.go", []string{"if v, has := labels[key]; has {", "if v, has := labels[key]; has && false {"}},
	{"pod affinity: the first of its kind", "fit/spread.go", []string{`sum == 0 && a.selfAll`, `false`}},
	{"pod affinity: only of its own kind", "fit/spread.go", []string{`sum == 0 && a.selfAll`, `sum == 0`}},
	{"pod affinity: all terms hold together", "fit/compile.go", []string{`b.counter(countsMatched, all, b.key`, `b.counter(countsMatched, all[:1], b.key`}},
	{"pod affinity: nodes without the label", "fit/spread.go", []string{"domain < 0 {\n\t\t\treturn false", "domain < 0 {\n\t\t\tcontinue"}},
	{"pod anti-affinity", "fit/spread.go", []string{`s.excluded(a.anti, row)`, `s.excluded(nil, row)`}},
	{"devices: those that claims have", "observe/devices/slices.go", []string{`_, of.Taken = `, `_, _ = `}},
	{"devices: counters", "fit/devices/search.go", []string{`if left < 0 {`, `if left < -1 {`}},
	{"devices: taints", "fit/devices/search.go", []string{`for i := range dev.Taints {`, `for i := range dev.Taints[:0] {`}},
	{"devices: all", "fit/devices/search.go", []string{`case ask.All && count == 0:`, `case false:`}},
	{"devices: constraints", "fit/devices/search.go", []string{`case x.value != value:`, `case false:`}},
	{"devices: alternatives", "fit/devices/search.go", []string{`for i := range asks {`, `for i := range asks[:1] {`}},
	{"devices: pools that are not whole", "observe/devices/slices.go", []string{`return valid(pool) && !`, `return valid(pool) || !`}},
	{"devices: allocated claims", "fit/claims.go", []string{`if len(claims[i].On) > 0 {`, `if false {`}},
	{"devices: classes", "observe/devices/demand.go", []string{`slices.Concat(selectors, expressions(own))`, `slices.Concat(selectors[:0], expressions(own))`}},
	{"pod anti-affinity of others", "fit/spread.go", []string{`s.excluded(a.existing, row)`, `s.excluded(nil, row)`}},
	{"pod terms: namespaces", "fit/selector.go", []string{`if !slices.Contains(m.namespaces, c.Namespace) &&`, `if false && !slices.Contains(m.namespaces, c.Namespace) &&`}},
	{"pod terms: namespaceSelector", "fit/selector.go", []string{`!selects(m.wide, known[c.Namespace])`, `!(existing && selects(m.wide, known[c.Namespace]))`}},
	{"pod terms: namespaceSelector of others", "fit/selector.go", []string{`!selects(m.wide, known[c.Namespace])`, `!(!existing && selects(m.wide, known[c.Namespace]))`}},
	{"pod terms: namespaceSelector and no labels", "fit/selector.go", []string{`!selects(m.wide, nil)`, `true`}},
	{"ties: labels", "fit/constraintclasses.go", []string{`cluster.AppendLabels(cluster.AppendString(b, c.Namespace), c.Labels)`, `cluster.AppendString(b, c.Namespace)`}},
	{"selectors: NotIn", "observe/convert/terms.go", []string{`r := cluster.Requirement{Key: e.Key, Operator: string(e.Operator)}`, `r := cluster.Requirement{Key: e.Key, Operator: strings.TrimPrefix(string(e.Operator), "Not")}`, "import (\n", "import (\n\t\"strings\"\n"}},
}

// recordedWorlds is how many worlds every mutant is shown.
const recordedWorlds = 2500

// TestMutants breaks one rule after another, in a copy that only the compiler sees
// (go build -overlay), and wants each to be noticed: the first of each feature, and all
// with -all-mutants.
func TestMutants(t *testing.T) {
	_, here, _, _ := runtime.Caller(0)
	module := filepath.Dir(filepath.Dir(filepath.Dir(here)))
	dir := t.TempDir()
	records := filepath.Join(dir, "records")
	f, err := os.Create(records)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteRecords(t.Context(), judgeProgram, 1, recordedWorlds, f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	t.Run("none", func(t *testing.T) {
		if said := tryMutant(t, module, dir, records, mutant{}); said != "" {
			t.Fatalf("without a mutant: %s", said)
		}
	})
	caught, tried := 0, map[string]bool{}
	for _, m := range mutants {
		feature, _, _ := strings.Cut(m.feature, ":")
		if tried[feature] && !*allMutants {
			continue
		}
		tried[feature] = true
		t.Run(m.feature, func(t *testing.T) {
			said := tryMutant(t, module, dir, records, m)
			if said == "" {
				t.Errorf("nobody noticed: %s: %q", m.file, m.edits)
				return
			}
			caught++
			t.Log(said)
		})
	}
	t.Logf("%d broken rules of %d features were caught", caught, len(tried))
}

// tryMutant builds the replaying command with a mutant and returns the difference that
// it found, or "".
func tryMutant(t *testing.T, module, dir, records string, m mutant) string {
	t.Helper()
	args := []string{"build", "-buildvcs=false", "-ldflags", "-s -w", "-o", filepath.Join(dir, "mutant")}
	if m.file != "" {
		args = append(args, "-overlay", overlay(t, filepath.Join(filepath.Dir(module), "agent", m.file), dir, m.edits))
	}
	build := exec.CommandContext(t.Context(), "go", append(args, "./cmd/oracle")...)
	build.Dir = module
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, said)
	}
	said, err := exec.CommandContext(t.Context(), filepath.Join(dir, "mutant"), "-replay", records).CombinedOutput()
	var exit *exec.ExitError
	if err == nil {
		return ""
	}
	if !errors.As(err, &exit) || exit.ExitCode() != 3 && !strings.HasPrefix(string(said), "panic: ") {
		t.Fatalf("replay: %v\n%s", err, said)
	}
	line, _, _ := strings.Cut(string(said), "\n")
	return line
}

func overlay(t *testing.T, file, dir string, edits []string) string {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(source)
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			t.Fatalf("%s has no %q any more: write the mutant anew", file, edits[i])
		}
		text = strings.ReplaceAll(text, edits[i], edits[i+1])
	}
	broken := filepath.Join(dir, "broken.go")
	if err := os.WriteFile(broken, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{file: broken}})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(out, list, 0o644); err != nil {
		t.Fatal(err)
	}
	return out
}
