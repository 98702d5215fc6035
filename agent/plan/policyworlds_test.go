package plan

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// wish tells the lines of a story that an operator speaks:
//
//	headroom NAME COUNT cpu=.. mem=.. [select=k:v] [machine=GROUP] [from=10m to=1h]
//	priorities PRIORITY:REGEX ...     priorities fault WORDS
//	shows NODE [taints=k:v:Effect,..|none] [operator=k:v:Effect] [lacks=label,..] [has=k:v] [gpu=N] [disks=N] [devices=KIND:N,..|none] [taken=KIND:N,..]
func (w *teller) wish(f []string, kv map[string]string) bool {
	switch f[0] {
	case "headroom":
		h := cluster.Headroom{Name: f[1], Count: num(f[2]), Group: cluster.GroupID(kv["machine"]),
			Piece: cluster.PodClass{Requests: w.amount(kv), NodeSelector: pairs(kv["select"])}}
		if kv["to"] != "" {
			h.Scheduled, h.Windows = true, []cluster.Window{{From: w.s.Now.Add(dur(kv["from"])), To: w.s.Now.Add(dur(kv["to"]))}}
		}
		w.p.Headroom = append(w.p.Headroom, h)
	case "priorities":
		if f[1] == "fault" {
			w.p.PrioritiesFault = strings.Join(f[2:], " ")
			return true
		}
		w.p.Priorities, w.p.PrioritiesFault = nil, ""
		for _, x := range f[1:] {
			prio, pattern, _ := strings.Cut(x, ":")
			w.p.Priorities = append(w.p.Priorities, cluster.PriorityTier{Priority: num(prio), Patterns: []string{pattern}})
		}
	case "note": // an annotation of a node: note NODE KEY=VALUE
		key, v, _ := strings.Cut(f[2], "=")
		w.eachNode(cluster.NodeName(f[1]), func(n *cluster.Node) {
			n.Annotations = maps.Clone(n.Annotations)
			round.Set(&n.Annotations, key, v)
		})
	case "controlplane":
		w.s.ControlPlaneVersion = f[1]
	case "sick": // a condition of a node, or Ready that is not
		w.eachNode(cluster.NodeName(f[1]), func(n *cluster.Node) {
			since := w.s.Now.Add(-dur(kv["since"]))
			if f[2] == "NotReady" {
				n.Ready, n.ReadySince = cluster.StatusUnknown, since
				return
			}
			round.Set(&n.Conditions, f[2], since)
		})
	case "shows": // what a Node shows beside, or in place of, its template
		w.eachNode(cluster.NodeName(f[1]), func(n *cluster.Node) { shows(n, kv) })
	default:
		return false
	}
	return true
}

func shows(n *cluster.Node, kv map[string]string) {
	if kv["taints"] != "" {
		n.Taints = taints(kv["taints"])
	}
	n.OperatorTaints = taints(kv["operator"])
	n.Taints = append(n.Taints, n.OperatorTaints...)
	for _, key := range strings.Split(kv["lacks"], ",") {
		delete(n.Labels, key)
	}
	maps.Copy(n.Labels, pairs(kv["has"]))
	if kv["kubelet"] != "" {
		n.KubeletVersion = kv["kubelet"]
	}
	if kv["ready"] != "" {
		n.Ready = cluster.Status(kv["ready"])
	}
	if kv["gpu"] != "" {
		n.Allocatable.Extended = map[string]int64{"nvidia.com/gpu": int64(num(kv["gpu"]))}
	}
	if kv["disks"] != "" {
		n.VolumeLimits = map[string]int64{"ebs": int64(num(kv["disks"]))}
	}
	showsDevices(n, kv)
}

// groupWish sets what groups.yaml says of a group: price, spot (types that it may start there), prio, balance, quota, zones, pause
// (for a time, or "on", or "off"), gpuutil, startup, ignoreds.
func (w *teller) groupWish(g *cluster.NodeGroup, k, v string) {
	switch k {
	case "price":
		g.Price, _ = strconv.ParseFloat(v, 64)
	case "spot":
		g.SpotTypes = num(v)
	case "prio":
		n := num(v)
		g.Priority = &n
	case "balance":
		g.Balance = v
	case "zones": // the cloud picks one of them
		g.Template.Zones, g.Template.ZoneLabels = strings.Split(v, ","), []string{"zone", "topology.kubernetes.io/zone"}
	case "quota":
		g.Quota = v
	case "pause":
		g.Pause = &cluster.Pause{Why: "maintenance"}
		switch v {
		case "on":
		case "off":
			g.Pause = nil
		default:
			g.Pause.Until = w.s.Now.Add(dur(v))
		}
	case "gpuutil":
		f, _ := strconv.ParseFloat(v, 64)
		g.Options.ScaleDownGPUUtilization = &f
	case "unneeded":
		d := dur(v)
		g.Options.ScaleDownUnneededTime = &d
	case "provision":
		d := dur(v)
		g.Options.MaxNodeProvisionTime = &d
	case "startup":
		d := dur(v)
		g.Options.MaxNodeStartupTime = &d
	case "ignoreds":
		yes := v == "true"
		g.Options.IgnoreDaemonSetsUtilization = &yes
	default:
		w.replaceWish(g, k, v)
	}
}

func (w *teller) setPolicy(k, v string) bool {
	switch k {
	case "RandomSeed":
		w.p.RandomSeed = uint64(num(v))
	case "Balance":
		w.p.BalanceSimilarNodeGroups = v == "true"
	case "BalanceIgnoreLabels":
		w.p.BalanceIgnoreLabels = strings.Split(v, ",")
	case "BalanceLabels":
		w.p.BalanceLabels = strings.Split(v, ",")
	case "MaxMemoryTotal":
		w.p.MaxMemoryTotal = int64(num(v))
	case "MinCoresTotal":
		w.p.MinCoresTotal = int64(num(v))
	case "MinMemoryTotal":
		w.p.MinMemoryTotal = int64(num(v))
	case "GPUTotal":
		return w.p.GPUTotal.Decode(v) == nil
	case "Consolidate":
		w.p.Consolidate, w.p.ConsolidateAfter, w.p.ConsolidateSaving = v, 30*time.Minute, 0.15
	case "ConsolidatePodCost":
		w.p.ConsolidatePodCost, _ = strconv.ParseFloat(v, 64)
	case "SoftTaints":
		w.p.MaxBulkSoftTaintCount = num(v)
	case "DrainPriority":
		return w.p.DrainPriority.Decode(v) == nil
	case "EvictDaemons":
		w.p.EvictDaemonsOccupied = v == "true"
	case "NodeDeletionDelayTimeout":
		w.p.NodeDeletionDelayTimeout = dur(v)
	case "ScaleDownUnready":
		w.p.ScaleDownUnready = v == "true"
	case "StartupTaints":
		w.p.StartupTaints = strings.Split(v, ",")
	case "StatusTaints":
		w.p.StatusTaints = strings.Split(v, ",")
	case "MaxNodeProvisionTime":
		w.p.MaxNodeProvisionTime = dur(v)
	case "UnneededFor":
		w.p.UnneededFor = dur(v)
	case "SkipNodesWithCustomPods":
		w.p.SkipNodesWithCustomPods = v == "true"
	default:
		return w.replacePolicy(k, v)
	}
	return true
}

// somePolicy and someWishes are an operator of chance.
func somePolicy(r *rand.Rand, p *decision.Policy) {
	p.Expander = pick(r, p.Expander, p.Expander, "price", "priority,price", "random")
	p.RandomSeed = r.Uint64()
	p.Patience = time.Duration(p.RandomSeed%3) * time.Minute // no draw more: seeds keep their worlds
	p.Priorities = []cluster.PriorityTier{{Priority: r.IntN(3), Patterns: []string{"g1"}}, {Priority: 1, Patterns: []string{".*"}}}
	p.BalanceSimilarNodeGroups = r.IntN(3) == 0
	p.Consolidate, p.ConsolidateSaving = pick(r, "off", "priced", "always"), 0.1
	p.ConsolidateAfter = pick(r, 0, time.Minute)
	p.MaxBulkSoftTaintCount = pick(r, 0, 2, 10)
	p.DrainPriority = pick(r, nil, nil, decision.DrainOrder{{Priority: 0, Grace: time.Minute}, {Priority: 50, Grace: 2 * time.Minute}})
	p.EvictDaemonsOccupied, p.EvictDaemonsEmpty = r.IntN(2) == 0, r.IntN(4) == 0
	p.NodeDeletionDelayTimeout = 2 * time.Minute
	p.MinCoresTotal = pick(r, int64(0), 0, 0, 3)
	p.GPUTotal = pick(r, nil, nil, decision.Bounds{{Resource: "nvidia.com/gpu", Min: 0, Max: 3}})
	if r.IntN(4) > 0 {
		return
	}
	h := cluster.Headroom{Name: "spare", Count: 1 + r.IntN(5), Piece: cluster.PodClass{Requests: cluster.Resources{MilliCPU: int64(r.IntN(12)) * 100, Memory: int64(r.IntN(8)) << 28}}}
	if r.IntN(3) == 0 {
		h.Group = "g0"
	}
	if r.IntN(3) == 0 {
		h.Scheduled, h.Windows = true, []cluster.Window{{From: t0.Add(-time.Hour), To: t0.Add(time.Hour)}}
	}
	p.Headroom = append(p.Headroom, h)
}

func someWishes(r *rand.Rand, g *cluster.NodeGroup, before []cluster.NodeGroup) {
	if len(before) > 0 && r.IntN(2) == 0 {
		g.Template = before[len(before)-1].Template
	}
	g.Price = pick(r, 0, 0.1, 0.2)
	g.Balance = pick(r, "", "", "set")
	g.Quota = pick(r, "", "standard", "gpu")
	if r.IntN(8) == 0 {
		g.Pause = &cluster.Pause{Why: "maintenance", Until: pick(r, time.Time{}, t0.Add(time.Minute), t0.Add(-time.Minute))}
	}
	if r.IntN(4) == 0 {
		n := r.IntN(3)
		g.Priority = &n
	}
}
