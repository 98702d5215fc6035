package plan

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

var update = flag.Bool("update", false, "rewrite the want sections of the stories")

// TestStories plays every testdata/*.txtar: world sections change the world line by
// line and let Decide look at it; want sections are what it says. Memory is carried
// from one to the next. The line language is in teller.line.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d stories, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { play(t, file) })
	}
}

type section struct {
	name, body string
	line       int // of the file, of its first line
}

// split reads the txtar format: a comment, then "-- name --" sections.
func split(text string) (comment string, out []section) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "-- "); ok && strings.HasSuffix(name, " --") {
			out = append(out, section{name: strings.TrimSuffix(name, " --"), line: n + 1})
		} else if len(out) == 0 {
			comment += line
		} else {
			out[len(out)-1].body += line
		}
	}
	return comment, out
}

func play(t *testing.T, file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	comment, sections := split(string(b))
	w := &teller{t: t, p: policy()}
	w.s.Now = t0
	var out strings.Builder
	out.WriteString(comment)
	got := ""
	for i, s := range sections {
		switch s.name {
		case "world":
			fmt.Fprintf(&out, "-- world --\n%s", s.body)
			w.tell(file, s)
			plan, m := check(t, w.s, w.m, w.p, uint64(i))
			noContradiction(t, w.s, w.m, w.p, plan)
			w.m, w.last, got = m, plan, plan.String()
			w.s.Outcomes = nil
			if !plan.Wake.IsZero() {
				got += "wake in " + plan.Wake.Sub(w.s.Now).String() + "\n"
			}
			if got == "" {
				got = "nothing\n"
			}
		case "want":
			if s.body != got && !*update {
				t.Errorf("%s, want %d:\n%s--- got\n%s", file, i, s.body, got)
			}
			fmt.Fprintf(&out, "-- want --\n%s", got)
		default:
			t.Fatalf("%s: section %q", file, s.name)
		}
	}
	if *update && out.String() != string(b) {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// teller keeps the world of one story.
type teller struct {
	t    *testing.T
	s    cluster.Snapshot
	m    decision.Memory
	p    decision.Policy
	last decision.Plan
	at   string // file and line
}

// tell changes the world as a section says.
func (w *teller) tell(file string, s section) {
	n := s.line
	for line := range strings.Lines(s.body) {
		w.at = fmt.Sprintf("%s:%d", file, n)
		w.line(strings.TrimSpace(line))
		n++
	}
}

// line changes the world. A word that words does not have is refused:
//
//	group NAME MIN..MAX target=N cpu=M mem=SIZE pods=N labels=k:v taints=k:v:Effect [unknown=..] [stale=..] [paused=..] [keeps=..] [busy=..]
//	set NAME target=N min=N max=N ...           the same keys for a group that is there; cpu makes a new template
//	instance GROUP ID [phase=..] [age=10m] [addr=..] [uncreated=1]
//	node NAME [group=G] [instance=ID] [age=1h] [cpu=.. mem=..] [ready=False] [pid=none] [addr=..] [uuid=..] [cordon=1] [mark=30s] [ours=1] [anno=k:v] [plane=1]
//	pods NAME COUNT cpu=.. mem=.. [from=NUMBER] [on=NODE] [pending=1|new] [owner=none|Kind] [pdb=..] [class keys]
//	missing NAME N     gone KIND NAME     pdb NAME N     daemonset NAME cpu=.. [rev=N]; its pods: pods NAME 1 owner=DaemonSet [rev=N]
//	pass DURATION      restart            stale WHY      policy Field=value
//	interrupt NODE     spared NODE
//	accept [slowly=1]  carries out the growth and the marks of the last plan; slowly: machines are being ended, and their Nodes stay
func (w *teller) line(line string) {
	f := strings.Fields(line)
	if len(f) == 0 || strings.HasPrefix(line, "#") {
		return
	}
	if fault := refused(f); fault != "" {
		w.t.Fatalf("%s: %s: %s", w.at, line, fault)
	}
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case badValue:
			w.t.Fatalf("%s: %s: %s", w.at, line, fault)
		default:
			panic(fault)
		}
	}()
	w.do(f, line)
}

// do is line without the checks.
func (w *teller) do(f []string, line string) {
	kv := make(map[string]string)
	for _, x := range f[1:] {
		if k, v, ok := strings.Cut(x, "="); ok {
			kv[k] = strings.ReplaceAll(v, "_", " ")
		}
	}
	switch f[0] {
	case "group":
		lo, hi, _ := strings.Cut(f[2], "..")
		w.s.Groups = append(w.s.Groups, cluster.NodeGroup{ID: cluster.GroupID(f[1]), Min: num(lo), Max: num(hi), ReadAt: w.s.Now})
		w.group(&w.s.Groups[len(w.s.Groups)-1], kv)
	case "set":
		w.group(w.find(f[1]), kv)
	case "instance":
		g := w.find(f[1])
		in := cluster.Instance{ID: cluster.InstanceID(f[2]), Phase: cluster.PhaseRunning, Member: true, Source: g.Template.Source, Created: w.s.Now.Add(-dur(kv["age"]))}
		if p, ok := kv["phase"]; ok {
			in.Phase = cluster.Phase(p)
		}
		if kv["uncreated"] != "" {
			in.Created = time.Time{}
		}
		if a := kv["addr"]; a != "" {
			in.Addresses = append(in.Addresses, netip.MustParseAddr(a))
		}
		if x := kv["failure"]; x != "" {
			in.Failure = &cluster.Failure{Cause: cluster.CauseCapacity, Text: x, At: in.Created}
		}
		g.Instances = append(g.Instances, in)
	case "node":
		w.node(f[1], kv)
	case "pods":
		w.pods(f[1], num(f[2]), kv)
	case "daemonset":
		w.s.DaemonSets = append(w.s.DaemonSets, cluster.DaemonSet{Key: cluster.PodKey("kube-system/" + f[1]), UID: cluster.UID(f[1]), Class: w.class(f[1], kv), Revision: kv["rev"]})
	case "missing":
		w.s.Controllers = []cluster.Controller{{Owner: cluster.Owner{Kind: "ReplicaSet", Name: f[1], UID: cluster.UID(f[1])}, Key: cluster.PodKey("default/" + f[1]), Missing: num(f[2])}}
	case "gone":
		w.gone(f[1], f[2])
	case "pdb":
		w.s.Budgets = slices.DeleteFunc(w.s.Budgets, func(b cluster.Budget) bool { return b.Key == f[1] })
		w.s.Budgets = append(w.s.Budgets, cluster.Budget{Key: f[1], Allowed: num(f[2])})
	case "pass":
		w.s.Now = w.s.Now.Add(dur(f[1]))
		for i := range w.s.Groups {
			if w.s.Groups[i].Stale == "" {
				w.s.Groups[i].ReadAt = w.s.Now
			}
		}
	case "restart":
		w.m = decision.Memory{}
	case "stale":
		w.s.Stale = strings.Join(f[1:], " ")
	case "failure":
		g := w.find(f[1])
		g.Failures = append([]cluster.Failure{{Cause: cluster.Cause(f[2]), Text: strings.Join(f[3:], " "), At: w.s.Now}}, g.Failures...)
	case "failed": // the last plan's action on a group failed: failed GROUP KIND TEXT
		w.s.Outcomes = append(w.s.Outcomes, cluster.Outcome{Action: "grow", Group: cluster.GroupID(f[1]), Kind: f[2], Error: strings.Join(f[3:], " "), At: w.s.Now})
	case "kept": // the last plan's end of an instance failed: kept GROUP INSTANCE KIND TEXT
		w.s.Outcomes = append(w.s.Outcomes, cluster.Outcome{Action: "terminate", Group: cluster.GroupID(f[1]), Instance: cluster.InstanceID(f[2]), Kind: f[3], Error: strings.Join(f[4:], " "), At: w.s.Now})
	case "interrupt", "spared": // the cloud gives notice of an instance, or takes it back
		w.interrupt(f[1], f[0] == "interrupt")
	case "policy":
		w.policy(kv)
	case "accept":
		w.accept(kv["slowly"] != "")
	default:
		if !w.wish(f, kv) {
			w.t.Fatalf("%s: %s: words has the command, and nothing reads it", w.at, line)
		}
	}
}

func (w *teller) find(name string) *cluster.NodeGroup {
	for i := range w.s.Groups {
		if w.s.Groups[i].ID == cluster.GroupID(name) {
			return &w.s.Groups[i]
		}
	}
	w.t.Fatalf("%s: no group %s", w.at, name)
	return nil
}

func pairs(s string) map[string]string {
	if s == "" {
		return nil
	}
	out := map[string]string{}
	for x := range strings.SplitSeq(s, ",") {
		k, v, _ := strings.Cut(x, ":")
		out[k] = v
	}
	return out
}

func taints(s string) (out []cluster.Taint) {
	for x := range strings.SplitSeq(s, ",") {
		if p := strings.Split(x, ":"); len(p) == 3 {
			out = append(out, cluster.Taint{Key: p[0], Value: p[1], Effect: p[2]})
		}
	}
	return out
}

func (w *teller) amount(kv map[string]string) cluster.Resources {
	r := cluster.Resources{MilliCPU: int64(num(strings.TrimSuffix(kv["cpu"], "m"))), Memory: size(kv["mem"]), Pods: int64(num(kv["pods"]))}
	if g := num(kv["gpu"]); g > 0 {
		r.Extended = map[string]int64{"nvidia.com/gpu": int64(g)}
	}
	return r
}

func (w *teller) group(g *cluster.NodeGroup, kv map[string]string) {
	if kv["cpu"] == "" && kv["mem"]+kv["pods"]+kv["gpu"]+kv["disks"]+kv["devices"]+kv["labels"]+kv["taints"] != "" {
		panic(badValue("mem, pods, gpu, disks, devices, labels and taints make a new template, which needs cpu"))
	}
	if kv["cpu"] != "" {
		g.Template = cluster.Template{Spec: "lt-1", Labels: pairs(kv["labels"]), Taints: taints(kv["taints"]), Allocatable: w.amount(kv)}
		if g.Template.Allocatable.Pods == 0 {
			g.Template.Allocatable.Pods = 110
		}
		g.Template.Capacity = g.Template.Allocatable
		if n := num(kv["disks"]); n > 0 {
			g.Template.VolumeLimits = map[string]int64{"ebs": int64(n)}
		}
		g.Template.Devices = devices(kv["devices"], "")
	}
	for k, v := range kv {
		switch k {
		case "target":
			g.Target = num(v)
		case "min":
			g.Min = num(v)
		case "max":
			g.Max = num(v)
		case "unknown":
			g.Template.Unknown = v
		case "stale":
			g.Stale = v
		case "paused":
			g.Paused = v
		case "replacing":
			g.Replacing = v
		case "replacingstale":
			g.ReplacingStale = v
		case "keeps":
			g.Keeps = v
		case "busy":
			g.Busy = v
		default:
			w.groupWish(g, k, v)
		}
	}
}

func (w *teller) node(name string, kv map[string]string) {
	if kv["cpu"] == "" && kv["mem"]+kv["pods"]+kv["gpu"] != "" {
		panic(badValue("mem, pods and gpu say what is allocatable, which needs cpu"))
	}
	n := cluster.Node{Name: cluster.NodeName(name), UID: cluster.UID(name), Created: w.s.Now.Add(-dur(kv["age"])), Ready: cluster.StatusTrue, Annotations: pairs(kv["anno"]),
		Labels: pairs(kv["labels"]), Taints: taints(kv["taints"]), ControlPlane: kv["plane"] != "", Unschedulable: kv["cordon"] != "", SystemUUID: kv["uuid"], Allocatable: w.amount(kv)}
	if kv["ready"] != "" {
		if n.Ready = cluster.Status(kv["ready"]); kv["ready"] == "Unknown" {
			n.Ready = cluster.StatusUnknown
		}
		n.ReadySince = w.s.Now.Add(-dur(kv["since"]))
	}
	if g := kv["group"]; g != "" {
		gr := w.find(g)
		own := n.Labels
		n.Allocatable, n.Labels, n.Devices = gr.Template.Allocatable, maps.Clone(gr.Template.Labels), gr.Template.Devices
		for k, v := range own {
			round.Set(&n.Labels, k, v)
		}
		n.Taints = append(n.Taints, gr.Template.Taints...)
		id := cluster.InstanceID("aws:///z/i-" + name)
		if kv["instance"] != "" {
			id = cluster.InstanceID(kv["instance"])
		} else {
			gr.Instances = append(gr.Instances, cluster.Instance{ID: id, Phase: cluster.PhaseRunning, Member: true, Created: n.Created})
		}
		w.nodeSource(gr, id, kv)
		if kv["pid"] == "" {
			n.ProviderID = string(id)
		}
	}
	if kv["pid"] != "" && kv["pid"] != "none" {
		n.ProviderID = kv["pid"]
	}
	if kv["addr"] != "" {
		n.Addresses = []string{kv["addr"]}
	}
	if kv["cpu"] != "" {
		n.Allocatable = w.amount(kv)
	}
	showsDevices(&n, kv)
	if n.Allocatable.Pods == 0 {
		n.Allocatable.Pods = 110
	}
	round.Set(&n.Labels, hostname, name)
	n.Capacity = n.Allocatable
	if kv["mark"] != "" {
		w.mark(&n, w.s.Now.Add(-dur(kv["mark"])), kv["ours"] != "no")
	}
	w.s.Nodes = append(w.s.Nodes, &n)
}

// devices reads kinds of devices and how many, "gpu:4,nic:2"; taken are those that claims have. A kind is the driver, and the selector
// that selects it.
func devices(of, taken string) *cluster.Devices {
	if of == "" || of == "none" {
		return nil
	}
	out, gone := &cluster.Devices{}, pairs(taken)
	for _, kind := range slices.Sorted(maps.Keys(pairs(of))) {
		for i := range num(pairs(of)[kind]) {
			out.Devices = append(out.Devices, cluster.Device{Driver: kind, Name: fmt.Sprint(kind, i), Matches: []string{kind}, Taken: i < num(gone[kind])})
		}
	}
	return out
}

// showsDevices reads what devices a node has, where that is not what its group's template says.
func showsDevices(n *cluster.Node, kv map[string]string) {
	if kv["devices"] != "" {
		n.Devices = devices(kv["devices"], kv["taken"])
	} else if kv["taken"] != "" {
		all := *n.Devices
		all.Devices = slices.Clone(all.Devices)
		left := map[string]int{}
		for kind, count := range pairs(kv["taken"]) {
			left[kind] = num(count)
		}
		for i := range all.Devices {
			d := &all.Devices[i]
			left[d.Driver]--
			d.Taken = left[d.Driver] >= 0
		}
		n.Devices = &all
	}
}

func (w *teller) mark(n *cluster.Node, at time.Time, ours bool) {
	n.Unschedulable = true
	n.Taints = append(slices.Clone(n.Taints), cluster.Taint{Key: cluster.TaintToBeDeleted, Value: fmt.Sprint(at.Unix()), Effect: "NoSchedule"})
	if ours {
		n.Annotations = maps.Clone(n.Annotations)
		round.Set(&n.Annotations, cluster.AnnotationCordoned, "true")
	}
}

func (w *teller) class(name string, kv map[string]string) int {
	app := cmp.Or(kv["app"], name)
	c := cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": app}, Requests: w.amount(kv), NodeSelector: pairs(kv["select"]), Priority: int32(num(kv["prio"]))}
	c.Requests.Pods = 1
	if rev := kv["rev"]; rev != "" {
		c.Labels[cluster.LabelTemplateGeneration] = rev
	}
	for _, t := range taints(kv["tolerate"]) {
		c.Tolerations = append(c.Tolerations, cluster.Toleration{Key: t.Key, Operator: "Equal", Value: t.Value, Effect: t.Effect})
	}
	if kv["port"] != "" {
		c.HostPorts = []cluster.HostPort{{IP: "0.0.0.0", Protocol: "TCP", Port: int32(num(kv["port"]))}}
	}
	if kv["uses"] != "" {
		c.NotUnderstood = []string{kv["uses"]}
	}
	if kv["large"] != "" {
		c.TooLarge, c.NotUnderstood = true, []string{"its labels take " + kv["large"]}
	}
	w.ties(&c, app, kv)
	w.claims(&c, kv["claims"])
	if kv["refused"] != "" {
		c.Volumes = []cluster.Volume{{Refused: strings.ReplaceAll(kv["refused"], "_", " ")}}
	}
	w.s.Classes = append(w.s.Classes, c)
	return len(w.s.Classes) - 1
}

// claims reads the claims of a class, one for each kind of devices: "gpu:2", "gpu:all", "on:NODE" for one that is allocated there.
func (w *teller) claims(c *cluster.PodClass, of string) {
	if of == "" {
		return
	}
	for x := range strings.SplitSeq(of, ",") {
		kind, count, _ := strings.Cut(x, ":")
		if kind == "on" {
			c.Claims = append(c.Claims, cluster.DeviceClaim{On: []cluster.NodeTerm{{Fields: []cluster.Requirement{{Key: "metadata.name", Operator: "In", Values: []string{count}}}}}})
			continue
		}
		ask := cluster.DeviceAsk{Selectors: []string{kind}, All: count == "all"}
		if !ask.All {
			ask.Count = num(count)
		}
		c.Claims = append(c.Claims, cluster.DeviceClaim{Requests: []cluster.DeviceRequest{{Name: "r", Alternatives: []cluster.DeviceAsk{ask}}}})
	}
}

// ties reads the constraints between a class and other pods: near and anti are KEY or KEY:APP, spread is
// KEY:SKEW, KEY:SKEW:MINDOMAINS or either with :honor (nodeTaintsPolicy: Honor), claim is NAME, NAME:ZONE or NAME::once for a claim that one pod may use. The
// key "host" is the hostname, and each claim counts against the limit of driver ebs.
func (w *teller) ties(c *cluster.PodClass, name string, kv map[string]string) {
	term := func(s string) cluster.PodTerm {
		key, app, ok := strings.Cut(s, ":")
		if !ok {
			app = name
		}
		if key == "host" {
			key = hostname
		}
		return cluster.PodTerm{TopologyKey: key, Namespaces: []string{"default"}, Selector: &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{app}}}}}
	}
	if kv["near"] != "" {
		c.PodAffinity = append(c.PodAffinity, term(kv["near"]))
	}
	if kv["anti"] != "" {
		c.PodAntiAffinity = append(c.PodAntiAffinity, term(kv["anti"]))
	}
	if key, rest, ok := strings.Cut(kv["spread"], ":"); ok {
		t := term(key)
		x := cluster.Spread{TopologyKey: t.TopologyKey, Selector: t.Selector}
		for i, word := range strings.Split(rest, ":") {
			switch {
			case i == 0:
				x.MaxSkew = num(word)
			case word == "honor":
				x.HonorTaints = true
			default:
				x.MinDomains = num(word)
			}
		}
		c.Spread = append(c.Spread, x)
	}
	if kv["claim"] != "" {
		f := strings.Split(kv["claim"]+"::", ":")
		v := cluster.Volume{Claim: "default/" + f[0], Driver: "ebs", Handle: f[0], OnePod: f[2] == "once"}
		if f[1] != "" {
			v.Affinity = []cluster.NodeTerm{{Labels: []cluster.Requirement{{Key: "zone", Operator: "In", Values: []string{f[1]}}}}}
		}
		c.Volumes = append(c.Volumes, v)
	}
}

func (w *teller) pods(name string, n int, kv map[string]string) {
	class := w.class(name, kv)
	ns := "default"
	if kv["ns"] != "" {
		ns = kv["ns"]
	}
	first := num(kv["from"])
	for i := first; i < first+n; i++ {
		p := cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("%s/%s-%03d", ns, name, i)), UID: cluster.UID(fmt.Sprintf("%s-%d", name, i)), Class: class, Created: cluster.At(w.s.Now.Add(-dur(kv["age"]))), GracePeriod: 30,
			Node: cluster.NodeName(kv["on"]), SafeToEvict: kv["safe"], DoNotDisrupt: kv["disrupt"] == "no", LocalStorage: kv["volume"], Mirror: kv["mirror"] != "", Gated: kv["gated"] != "", Nominated: cluster.NodeName(kv["nominated"])}
		p.Unready, p.Unstarted = kv["unready"] != "" || kv["crashing"] != "" || kv["unstarted"] != "", kv["unstarted"] != ""
		if kv["crashing"] != "" {
			p.Trouble = &cluster.PodTrouble{Waiting: "CrashLoopBackOff", Restarts: 3, RestartedAt: cluster.At(w.s.Now)}
		}
		if kv["failed"] != "" {
			p.Trouble = &cluster.PodTrouble{Scheduler: `running PreBind plugin "` + kv["failed"] + `"`}
		} else if p.Node == "" && kv["new"] == "" {
			p.Unschedulable = cluster.At(w.s.Now)
		}
		if o := kv["owner"]; o != "none" {
			if o == "" {
				o = "ReplicaSet"
			}
			p.Owner = &cluster.Owner{Kind: o, Name: name, UID: cluster.UID(name)}
		}
		if wish := (cluster.PodWishes{ScaleUpDelay: dur(kv["delay"]), KeepFor: dur(kv["keep"]), EvictDaemon: kv["evictds"], Daemon: kv["daemon"] != ""}); wish != (cluster.PodWishes{}) {
			p.Wishes = &wish
		}
		if kv["pdb"] != "" {
			p.Budgets = strings.Split(kv["pdb"], ",")
		}
		if kv["deleting"] != "" {
			p.Deleting = cluster.At(w.s.Now.Add(dur(kv["deleting"])))
		}
		w.s.Pods = append(w.s.Pods, p)
	}
}

func (w *teller) gone(kind, name string) {
	switch kind {
	case "pods":
		w.s.Pods = slices.DeleteFunc(w.s.Pods, func(p cluster.Pod) bool { return strings.Contains(string(p.Key), "/"+name+"-") })
	case "node":
		w.s.Nodes = slices.DeleteFunc(w.s.Nodes, func(n *cluster.Node) bool { return string(n.Name) == name })
	case "failures":
		w.find(name).Failures = nil
	}
}

func (w *teller) policy(kv map[string]string) {
	for k, v := range kv {
		switch k {
		case "Expander":
			w.p.Expander = v
		case "MaxNodesTotal":
			w.p.MaxNodesTotal = num(v)
		case "MaxCoresTotal":
			w.p.MaxCoresTotal = int64(num(v))
		case "DelayAfterAdd":
			w.p.DelayAfterAdd = dur(v)
		case "MaxEmptyAtOnce":
			w.p.MaxEmptyAtOnce = num(v)
		case "MaxDrainAtOnce":
			w.p.MaxDrainAtOnce = num(v)
		case "BurstHold":
			w.p.BurstHold = dur(v)
		case "Patience":
			w.p.Patience = dur(v)
		case "NewPodDelay":
			w.p.NewPodDelay = dur(v)
		default:
			if !w.setPolicy(k, v) {
				w.t.Fatalf("%s: a story sets no policy %s", w.at, k)
			}
		}
	}
}

// accept carries out the last plan's growth, marks and evictions.
func (w *teller) accept(slowly bool) {
	for _, a := range w.last.Actions {
		switch a := a.(type) {
		case decision.Grow:
			w.find(string(a.Group)).Target = a.To
			w.s.Outcomes = append(w.s.Outcomes, cluster.Outcome{Action: "grow", Group: a.Group, From: a.From, To: a.To, At: w.s.Now})
		case decision.Cordon:
			w.eachNode(a.Node, func(n *cluster.Node) {
				w.mark(n, w.s.Now, true)
				n.Annotations[cluster.AnnotationCordoned] += " " + a.Rule
			})
		case decision.Uncordon:
			w.eachNode(a.Node, func(n *cluster.Node) {
				n.Unschedulable, n.Annotations = false, nil
				n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t cluster.Taint) bool { return t.Key == cluster.TaintToBeDeleted })
			})
		case decision.SoftTaint:
			w.eachNode(a.Node, func(n *cluster.Node) {
				n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t cluster.Taint) bool { return t.Key == cluster.TaintDeletionCandidate })
				if !a.Off {
					n.Taints = append(n.Taints, cluster.Taint{Key: cluster.TaintDeletionCandidate, Value: fmt.Sprint(w.s.Now.Unix()), Effect: "PreferNoSchedule"})
				}
			})
		case decision.Evict:
			w.s.Pods = slices.DeleteFunc(w.s.Pods, func(p cluster.Pod) bool { return p.UID == a.UID })
		case decision.Terminate:
			g := w.find(string(a.Group))
			g.Target--
			if slowly {
				for i := range g.Instances {
					if g.Instances[i].ID == a.Instance {
						g.Instances[i].Phase = cluster.PhaseDeleting
					}
				}
				w.s.Outcomes = append(w.s.Outcomes, cluster.Outcome{Action: "terminate", Group: a.Group, Instance: a.Instance, Node: a.Node, At: w.s.Now})
				continue
			}
			g.Instances = slices.DeleteFunc(g.Instances, func(in cluster.Instance) bool { return in.ID == a.Instance })
			w.s.Nodes = slices.DeleteFunc(w.s.Nodes, func(n *cluster.Node) bool { return n.Name == a.Node })
			w.s.Outcomes = append(w.s.Outcomes, cluster.Outcome{Action: "terminate", Group: a.Group, Instance: a.Instance, Node: a.Node, At: w.s.Now})
		}
	}
}

// interrupt gives a node's instance two minutes, or lets it live.
func (w *teller) interrupt(node string, on bool) {
	for g := range w.s.Groups {
		for i := range w.s.Groups[g].Instances {
			if in := &w.s.Groups[g].Instances[i]; in.ID == cluster.InstanceID("aws:///z/i-"+node) {
				in.Phase, in.Interruption = cluster.PhaseRunning, nil
				if on {
					in.Phase, in.Interruption = cluster.PhaseDeleting, &cluster.Interruption{Why: "spot interruption notice", By: w.s.Now.Add(2 * time.Minute)}
				}
			}
		}
	}
}

func (w *teller) eachNode(name cluster.NodeName, do func(*cluster.Node)) {
	for i := range w.s.Nodes {
		if w.s.Nodes[i].Name == name {
			do(w.s.Nodes[i])
		}
	}
}
