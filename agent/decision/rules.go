package decision

// Level is how the journal tells what a rule holds.
type Level int

const (
	// Info: one line when something begins to be held and one when it no longer is. An operator may
	// have to do something.
	Info Level = iota + 1
	// Debug: a line at debug. The pod will be scheduled, the node is in use, a pause runs; explain and
	// status tell it at any time.
	Debug
	// Elsewhere: a line at debug too, because another part of the agent logs the cause with its remedy:
	// the inventory for a group's old facts, the watch over the API server for the cluster's.
	Elsewhere
	// ByAction: nothing is held by the rule. An action names it, and the action's own line tells it.
	ByAction
)

// Rule is one row of Rules. The journal, Events, metrics, the page, the journal catalog and
// docs/scaling-rules.md take their words from it.
type Rule struct {
	ID    string
	Level Level
	// Says is the sentence of the manual and of the journal catalog.
	Says string
	// Title is the heading of the page and of status where something is held by the rule; %s is its name.
	// Without a title it is no trouble: it passes, an operator wants it, or package trouble has a
	// heading of its own for it.
	Title string
	// ClusterAutoscaler is simulator.UnremovableReason's word for a node that the rule keeps. Without a
	// word cluster_autoscaler_unremovable_nodes_count has the ID.
	ClusterAutoscaler string
	// Remedy is one or two sentences to an operator. "the field WHY" is the reason's field in the journal.
	Remedy string
}

var byID = func() map[string]*Rule {
	out := make(map[string]*Rule, len(Rules))
	for i := range Rules {
		out[Rules[i].ID] = &Rules[i]
	}
	return out
}()

// RuleByID is a row of Rules; of a filter of package fit it has the remedy alone.
func RuleByID(id string) Rule {
	if r := byID[id]; r != nil {
		return *r
	}
	return Rule{Remedy: FilterRemedies[id]}
}

// FilterRemedies are what an operator does about fit's filters.
var FilterRemedies = map[string]string{
	"F0":  "Remove the feature from the pod, or give the pod a node by hand.",
	"F1":  "kubectl uncordon the node, if the cordon was made by mistake.",
	"F2":  "The pod names its node: only that node can take it.",
	"F3":  "Add the toleration to the pod, or let the pod use another group. The group's taints are in its template.",
	"F4":  "Compare the pod's nodeSelector and affinity with the labels of the group's template (autoscaler-agent explain group).",
	"F5":  "Another pod on the node uses the host port.",
	"F6":  "Lower the pod's requests, or offer a group with larger machines.",
	"F7":  "Another pod uses the ReadWriteOncePod volume.",
	"F8":  "The node has no free attachment for the volume.",
	"F9":  "The volume's zone or node has to be one that a group offers.",
	"F10": "The volume's zone has to be one that a group offers.",
	"F11": "Look at maxSkew and the zones of the groups (autoscaler-agent explain pod).",
	"F12": "Look at the pod's and its neighbours' affinity terms (autoscaler-agent explain pod).",
	"F13": "Compare the claim's selectors, counts and constraints with the ResourceSlices of the group's nodes, or tell template.devices in groups.yaml.",
}

// Rules are the rules of the engine, all fields of each: a row without one does not compile. An ID is
// stable: it is in the journal, in Events and in dashboards. F0-F13 are fit's filters.
var Rules = []Rule{
	{RuleRoomOnNode, Debug, "a pending pod has room on a node that is there: the scheduler will place it", "", "", ""},
	{RuleRoomUpcoming, Debug, "a pending pod has room on a machine that is upcoming", "", "", ""},
	{RuleGrow, ByAction, "grow: pods have room nowhere, and this group's machine would take them", "", "", ""},
	{RuleMin, ByAction, "grow: the target is below the group's minimum", "", "", ""},
	{RuleNoGroup, Info, "no group can help a pod: the reason of every group follows",
		"", "", "Each group's reason follows in the field WHY. autoscaler-agent explain pod NAME shows them with numbers."},
	{RuleNotUnderstood, Info, "the pod uses a scheduling feature that fit does not judge",
		"%s cannot be judged, and gets no machine", "", "Remove the scheduling feature from the pod, or give the pod a node by hand."},
	{RuleMax, Info, "the group is at its maximum",
		"", "", "Raise the group's maximum, if it is meant to be larger."},
	{RuleTotals, Info, "a limit of the whole cluster is reached (nodes, cores, memory)",
		"", "", "Raise the limit of the whole cluster (AUTOSCALER_SCALING_MAX_*), if it is meant to be larger."},
	{RuleBackoff, Info, "the group is backed off after failures, by cause",
		"", "", "The cause is in the field WHY. The group is tried again by itself when the backoff ends."},
	{RulePaused, Info, "the cloud itself will not start instances in this group",
		"The cloud refuses machines of %s", "", "Resume the Launch process of the group in the cloud."},
	{RuleTemplate, Info, "the group's template is unknown",
		"The agent does not know what the next machine of %s would be", "", "The template cannot be read: look at the cloud's answer in the field WHY and at the permissions (autoscaler-agent check)."},
	{RuleBounds, Info, "the group's bounds are invalid",
		"The bounds of %s are invalid", "", "Correct minimum and maximum of the group in the cloud or in groups.yaml."},
	{RuleGroupStale, Elsewhere, "the group's facts are old or incomplete: nothing is grown or deleted",
		"", "", "The cloud's answer is in the field WHY. autoscaler-agent check tells missing permissions."},
	{RuleExpendable, Info, "the pod's priority is below the cutoff",
		"", "", "Nothing, where the pod is meant to wait for free room. Else give it a higher priority, or lower AUTOSCALER_SCALING_EXPENDABLE_PODS_CUTOFF."},
	{RuleNewPod, Debug, "the pod is younger than the delay for new pods", "", "", ""},
	{RuleOneWay, Debug, "the group shrinks in this round, so it does not grow, or the other way round", "", "", ""},
	{RuleExpander, Info, "the expander that was asked for is not known; least-waste is used",
		"The expander that was asked for is not used", "", "Correct AUTOSCALER_SCALING_EXPANDER."},
	{RuleAhead, Info, "a Node is ahead of the cloud's reads: a target computed from them could be too low",
		"", "", "Nothing: the group's size is changed again when the cloud's answer has the Node."},
	{RuleQuota, Info, "another group that draws on the same quota was refused for it",
		"The cloud refuses machines of %s", "", "Ask the cloud for a higher quota, or lower the maximum of the groups that draw on it."},
	{RulePriorities, Info, "the priority map is missing or invalid: the last good one holds, or the next expander",
		"The priorities of groups cannot be used", "", "Correct the priorities (ConfigMap cluster-autoscaler-priority-expander, or the file)."},
	{RuleOperator, Info, "an operator's pause: nothing is grown or deleted in the group",
		"", "", "Remove the pause, when the group may scale again."},
	{RuleGroupHealth, Info, "too many nodes of the group are not Ready: it is not grown",
		"Too many nodes of %s are not Ready", "", "Find out why the group's nodes are not Ready. It is grown again when most of them are."},
	{RuleHeadroom, Info, "headroom that cannot be kept free, and why",
		"Headroom cannot be kept free", "", "Lower the headroom, or offer a group that can hold it."},
	{RuleBalance, Info, "a group of a balance set is left out of it: its machines differ too much",
		"", "", "Give the groups of the balance set machines of equal size, labels and taints, or take the group out of the set."},
	{RuleVolume, Info, "a volume or a resource claim of the pod keeps it off every node for now (it is missing or not bound, or its device class is): the agent buys no machine, because kube-scheduler would not place the pod on it",
		"%s waits for a volume or a resource claim", "", "Create the claim or the class, or look why it is not bound (kubectl describe pvc, kubectl describe resourceclaim)."},
	{RuleDeferred, Debug, "the agent buys no machine for the pod yet: kube-scheduler has still to place pods on nodes that are upcoming or have just become Ready (for pods with affinity or spread, and for pods that count on the same machines as these)", "", "", ""},
	{RuleCloudBusy, Debug, "the cloud still carries out another change of the group: the agent changes its size and ends its machines only after that", "", "", ""},
	{RuleBurst, Debug, "more pods of a burst are coming: the agent orders machines for all pods that came after its first order at once", "", "", ""},
	{RuleTooLarge, Info, "the pod's labels, selectors, affinity, tolerations and volumes take more memory than the agent keeps of one pod, or of all pods that differ: the agent does not keep them, and buys no machine for the pod",
		"%s is too large to be judged, and gets no machine", "", "Shorten the pod's labels, node selector, affinity, spread constraints, tolerations or volumes (fewer values), or give the pod a node by hand. The field WHY has sizes."},
	{RulePatience, Debug, "the new machine would be little filled: its pods wait for more pods, or for room on a node, until their waiting costs as much as what would stay empty", "", "", ""},
	{RuleOwnNode, Info, "the pod belongs to one node (a DaemonSet's pod) and waits for it: no other machine helps, and none is bought",
		"%s waits for its own node, and no new machine helps", "", "Give the DaemonSet a priority class (system-node-critical), so that kube-scheduler makes room on the node, or move other pods off it. The field WHY says what keeps the pod off."},
	{RuleUnjudged, Info, "kube-scheduler has neither placed the pod nor called it unschedulable, a minute after its creation or because of an error: no machine is bought for it",
		"kube-scheduler has not judged %s", "", "Look whether kube-scheduler runs, and what its log says of the pod. The field WHY has its error, where it told one."},

	{RuleStale, Elsewhere, "the Kubernetes facts may be old: nothing is deleted",
		"", "", "Look whether the API server answers (autoscaler-agent status)."},
	{RuleUnhealthy, Info, "too many nodes are not Ready: nothing is deleted",
		"Too many nodes are not Ready: nothing is deleted", "", "Find out why so many nodes are not Ready. Nothing is deleted before most of them are."},
	{RuleCooldown, Debug, "scale-down waits after a scale-up", "", "", ""},
	{RuleFailed, Info, "scale-down waits after a failure of it",
		"Scale-down has failed and waits", "", "Nothing: scale-down goes on by itself. The cause is the error of the failed action, one line above in the journal."},
	{RuleGrowing, Debug, "this round grows, or pods are still unjudged: no new scale-down", "", "", ""},
	{RuleBudget, Info, "a part of the round has spent its budget of steps: the rest of that part is decided coarsely, and the next round goes on",
		"A round takes too long: a part of it is decided coarsely", "", "Where it lasts: fewer node groups, fewer kinds of pods, or a pin to single nodes less make the rounds smaller (docs/scaling-rules.md)."},

	{RuleNoJoin, Info, "an instance never became a Node in its time",
		"%s never joins", "", "autoscaler-agent explain instance tells where the machine's start stopped. The instance is replaced."},
	{RuleNotStarted, Info, "the cloud could not start an instance",
		"The cloud could not start %s", "", "The cloud's reason is in the field WHY."},
	{RuleClaimed, Info, "an instance without a Node of its own may back a Node: never deleted",
		"%s may back a Node that does not name it", "", "Give the Node the right provider ID, or delete the instance by hand."},
	{RuleInstanceMin, Info, "an instance that should go cannot: the group is at its minimum",
		"%s should go, and the cloud would not let it", "", "Lower the group's minimum, or repair the instance by hand."},
	{RuleShort, Info, "the cloud has not delivered the target in its time",
		"The cloud has not delivered the machines of %s", "", "The cloud's reason is in the field WHY. Other groups are used meanwhile."},
	{RuleStarting, Debug, "the node is still starting: it has a taint, or lacks a label, a resource or a volume limit of its group's template; pods may count on it", "", "", ""},
	{RuleNeverStarted, Info, "a node has not become in its time what its group's machines are: what it shows is the truth",
		"%s has not become what its group's nodes are", "", "autoscaler-agent explain node names what has not passed or has not come. Look at what takes the taint off, or sets the label, on the nodes of the group."},
	{RuleLostNode, Info, "an instance has had no Node since it was one (or since this agent has looked): it may become one again within its provision time, and is ended after that",
		"%s has lost its Node", "", "Where the Node was deleted by hand, restart the kubelet of the machine to have it register, or end the machine."},

	{RuleUnneeded, ByAction, "the node's pods have room elsewhere, for long enough", "", "", ""},
	{RuleUnready, ByAction, "the node has not been Ready for long enough", "", "", ""},
	{RuleUnneededFor, Debug, "unneeded, but not for long enough yet",
		"", "NotUnneededLongEnough", ""},
	{RuleBusy, Debug, "requests are above the utilisation threshold",
		"", "NotUnderutilized", ""},
	{RuleOptOut, Info, "the node is opted out of scale-down",
		"", "ScaleDownDisabledAnnotation", "Remove the annotation cluster-autoscaler.kubernetes.io/scale-down-disabled, if the node may go."},
	{RuleBlocked, Info, "pods block the drain: every blocker is named",
		"", "BlockedByPod", "Every pod that blocks is named in the field WHY, with its remedy. autoscaler-agent explain node shows them all."},
	{RuleNoRoom, Debug, "the node's pods have no room elsewhere",
		"", "NoPlaceToMovePods", ""},
	{RuleAtMin, Debug, "the group is at its minimum",
		"", "NodeGroupMinSizeReached", "Lower the group's minimum, if it may be smaller."},
	{RuleInUse, Debug, "a pending pod or another node's pods count on this node", "", "", ""},
	{RuleNotOurs, Info, "the node is marked for deletion or cordoned by somebody else",
		"", "", "Remove the foreign cordon or mark, when its owner has finished with the node."},
	{RuleResume, ByAction, "a node that carries our mark goes on being drained", "", "", ""},
	{RuleTookBack, Info, "the mark is taken back",
		"", "", "Nothing: the node takes pods again."},
	{RuleBatch, Debug, "enough nodes are on their way out at once", "", "", ""},
	{RuleDraining, Info, "the drain waits",
		"", "CurrentlyBeingDeleted", "A PodDisruptionBudget or a pod that does not end holds the drain: it is named in the field WHY."},
	{RuleHalfMark, ByAction, "a cordon of ours, or what is left of one, without its mark: taken back", "", "", ""},
	{RuleInstance, Info, "the node's instance is not running or not a member of its group",
		"", "", "Look at the instance in the cloud."},
	{RuleEmpty, ByAction, "terminate: no pod that could be moved is left", "", "", ""},
	{RuleTotalsMin, Debug, "the cluster is at its least cores, memory or extended resources",
		"", "MinimalResourceLimitExceeded", "Lower the cluster's minimum (AUTOSCALER_SCALING_MIN_*), if it may be smaller."},
	{RuleSoft, Debug, "the scheduler is told to prefer other nodes, or no longer", "", "", ""},
	{RuleRequested, ByAction, "somebody asked for the node to go", "", "", ""},
	{RuleConsolidate, Info, "nodes are replaced by fewer or cheaper machines",
		"", "", "Nothing: the field WHY says what the change saves. AUTOSCALER_SCALING_CONSOLIDATE switches it off."},
	{RuleKeeps, Info, "rollout in progress: the cloud ends no named instance of the group, and no node of it is drained",
		"", "", "Nothing: the agent goes on when the cloud's own rollout of the group has ended."},
	{RuleInterrupted, Info, "the cloud ends the node's machine of its own accord (a spot interruption): the node is cordoned and its pods are evicted at once",
		"", "CurrentlyBeingDeleted", "Nothing: the cloud ends the machine. New machines come for the pods that have no room."},
	{RuleCompletion, Debug, "the node waits until pods that run to their end (safe-to-evict: on-completion) have ended",
		"", "BlockedByOnCompletionPod", "Wait until the pod has ended, or delete it yourself. Without the annotation safe-to-evict: on-completion it would be evicted."},
	{RuleDrifted, ByAction, "the node is not what its group would start today: it is replaced", "", "", ""},
	{RuleExpired, ByAction, "the node is older than nodes may become: it is replaced", "", "", ""},
	{RuleSick, ByAction, "the node has been sick for long enough (not Ready, or one of the repair conditions): it is replaced", "", "", ""},
	{RuleReplace, Info, "a node that is to be replaced has no room for its pods elsewhere: it stays until a machine of its group has come that has",
		"", "", "Where no machine can be ordered, the field WHY says which limit holds it. Raise the group's maximum by one, or annotate the Node with autoscaler-agent/scale-down-requested=true when its pods have room."},
	{RuleDisruption, Debug, "a disruption budget of the group or of the cluster lets no further node go now", "", "", ""},
	{RuleCanary, Debug, "the node waits for the machines that were started from its group's present source: the first one has to prove it by Ready pods, and no pod on the others may be in trouble", "", "", ""},
	{RuleHalted, Info, "the rollout of the group's present source is halted: machines of it did not come or do not stay Ready, or pods do not run there that run elsewhere; such a group also grows last",
		"The rollout of %s is halted", "", "Look why the machine failed (autoscaler-agent explain instance, kubectl describe pod). Correct the image or the user data: a newer source goes on by itself. To go on with this one: autoscaler-agent rollout resume GROUP."},
	{RuleBreaker, Info, "too many nodes are sick at once: the agent replaces none of them for that",
		"Too many nodes are sick: none is replaced for that", "", "Find out what the sick nodes have in common (network, registry, an add-on). The agent replaces them again when fewer are sick (AUTOSCALER_SCALING_REPAIR_MAX_SICK)."},
	{RuleReplaceNode, ByAction, "somebody asked for the node to be replaced", "", "", ""},
	{RuleRolloutHeld, Info, "an operator has paused the rollout of the group: no node of it is replaced because it is drifted or expired",
		"", "", "Let it go on with autoscaler-agent rollout resume GROUP, or --all, as the field WHY says."},
	{RuleForced, ByAction, "terminate: the drain of a node that is replaced did not end in its time, and the setting says that its machine ends with the pods that are left", "", "", ""},
	{RuleElsewhere, Info, "somebody else replaces the machines of the group now (an instance refresh of AWS), or the cloud has not told yet whether: the agent replaces no node of it because it is drifted or expired",
		"", "", "Nothing: the agent goes on when the replacement is over. To let the agent do it, end the other (aws autoscaling cancel-instance-refresh --auto-scaling-group-name GROUP)."},
}

// IDs of rules, for the code that decides by them.
const (
	RuleRoomOnNode    = "U1"
	RuleRoomUpcoming  = "U2"
	RuleGrow          = "U3"
	RuleMin           = "U4"
	RuleNoGroup       = "U5"
	RuleNotUnderstood = "U6"
	RuleMax           = "U7"
	RuleTotals        = "U8"
	RuleBackoff       = "U9"
	RulePaused        = "U10"
	RuleTemplate      = "U11"
	RuleBounds        = "U12"
	RuleGroupStale    = "U13"
	RuleExpendable    = "U14"
	RuleNewPod        = "U15"
	RuleOneWay        = "U16"
	RuleExpander      = "U17"
	RuleAhead         = "U18"
	RuleQuota         = "U19"
	RulePriorities    = "U20"
	RuleOperator      = "U21"
	RuleGroupHealth   = "U22"
	RuleHeadroom      = "U23"
	RuleBalance       = "U24"
	RuleVolume        = "U25"
	RuleDeferred      = "U26"
	RuleCloudBusy     = "U27"
	RuleBurst         = "U28"
	RuleTooLarge      = "U29"
	RulePatience      = "U30"
	RuleOwnNode       = "U31"
	RuleUnjudged      = "U32"

	RuleStale     = "H1"
	RuleUnhealthy = "H2"
	RuleCooldown  = "H3"
	RuleFailed    = "H4"
	RuleGrowing   = "H5"
	RuleBudget    = "H6"

	RuleNoJoin       = "I1"
	RuleNotStarted   = "I2"
	RuleClaimed      = "I3"
	RuleInstanceMin  = "I4"
	RuleShort        = "I5"
	RuleStarting     = "I6"
	RuleNeverStarted = "I7"
	RuleLostNode     = "I8"

	RuleUnneeded    = "D1"
	RuleUnready     = "D2"
	RuleUnneededFor = "D3"
	RuleBusy        = "D4"
	RuleOptOut      = "D5"
	RuleBlocked     = "D6"
	RuleNoRoom      = "D7"
	RuleAtMin       = "D8"
	RuleInUse       = "D9"
	RuleNotOurs     = "D10"
	RuleResume      = "D11"
	RuleTookBack    = "D12"
	RuleBatch       = "D13"
	RuleDraining    = "D14"
	RuleHalfMark    = "D15"
	RuleInstance    = "D16"
	RuleEmpty       = "D17"
	RuleTotalsMin   = "D18"
	RuleSoft        = "D19"
	RuleRequested   = "D20"
	RuleConsolidate = "D21"
	RuleKeeps       = "D22"
	RuleInterrupted = "D23"
	RuleCompletion  = "D24"
	RuleDrifted     = "D25"
	RuleExpired     = "D26"
	RuleSick        = "D27"
	RuleReplace     = "D28"
	RuleDisruption  = "D29"
	RuleCanary      = "D30"
	RuleHalted      = "D31"
	RuleBreaker     = "D32"
	RuleReplaceNode = "D33"
	RuleRolloutHeld = "D34"
	RuleForced      = "D35"
	RuleElsewhere   = "D36"
)
