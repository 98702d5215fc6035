package decision

// The rules of this engine. An ID is stable: it is in the journal, in Events and in
// dashboards. F0-F6 are fit's filters.
const (
	RuleRoomOnNode    = "U1"  // a pending pod has room on a node that is there: the scheduler will place it
	RuleRoomUpcoming  = "U2"  // a pending pod has room on a machine that is upcoming
	RuleGrow          = "U3"  // grow: pods have room nowhere, and this group's machine would take them
	RuleMin           = "U4"  // grow: the target is below the group's minimum
	RuleNoGroup       = "U5"  // no group can help a pod: the reason of every group follows
	RuleNotUnderstood = "U6"  // the pod uses a scheduling feature that fit does not judge
	RuleMax           = "U7"  // the group is at its maximum
	RuleTotals        = "U8"  // a limit of the whole cluster is reached (nodes, cores, memory)
	RuleBackoff       = "U9"  // the group is backed off after failures, by cause
	RulePaused        = "U10" // the cloud itself will not start instances in this group
	RuleTemplate      = "U11" // the group's template is unknown
	RuleBounds        = "U12" // the group's bounds are invalid
	RuleGroupStale    = "U13" // the group's facts are old or incomplete: nothing is grown or deleted
	RuleExpendable    = "U14" // the pod's priority is below the cutoff
	RuleNewPod        = "U15" // the pod is younger than the delay for new pods
	RuleOneWay        = "U16" // the group shrinks in this round, so it does not grow, or the other way round
	RuleExpander      = "U17" // the expander that was asked for is not known; least-waste is used
	RuleAhead         = "U18" // a Node is ahead of the cloud's reads: a target computed from them could be too low
	RuleQuota         = "U19" // another group that draws on the same quota was refused for it
	RulePriorities    = "U20" // the priority map is missing or invalid: the last good one holds, or the next expander
	RuleOperator      = "U21" // an operator's pause: nothing is grown or deleted in the group
	RuleGroupHealth   = "U22" // too many nodes of the group are not Ready: it is not grown
	RuleHeadroom      = "U23" // headroom that cannot be kept free, and why
	RuleBalance       = "U24" // a group of a balance set is left out of it: its machines differ too much
	RuleVolume        = "U25" // a volume of the pod keeps it off every node for now (its claim is missing or not bound): the agent buys no machine, because kube-scheduler would not place the pod on it
	RuleDeferred      = "U26" // the agent buys no machine for the pod yet: kube-scheduler has still to place pods on nodes that are upcoming or have just become Ready, or it would put other pods on the new machine first (for pods with affinity or spread, and for pods that count on the same machines as these)
	RuleCloudBusy     = "U27" // the cloud still carries out another change of the group: the agent changes its size and ends its machines only after that
	RuleBurst         = "U28" // more pods of a burst are coming: the agent orders machines for all pods that came after its first order at once
	RuleTooLarge      = "U29" // the pod's labels, selectors, affinity, tolerations and volumes take more memory than the agent keeps of one pod, or of all pods that differ: the agent does not keep them, and buys no machine for the pod
	RulePatience      = "U30" // the new machine would be little filled: its pods wait for more pods, or for room on a node, until their waiting costs as much as what would stay empty

	RuleStale     = "H1" // the Kubernetes facts may be old: nothing is deleted
	RuleUnhealthy = "H2" // too many nodes are not Ready: nothing is deleted
	RuleCooldown  = "H3" // scale-down waits after a scale-up
	RuleFailed    = "H4" // scale-down waits after a failure of it
	RuleGrowing   = "H5" // this round grows, or pods are still unjudged: no new scale-down
	RuleBudget    = "H6" // a part of the round has spent its budget of steps: the rest of that part is decided coarsely, and the next round goes on

	RuleNoJoin      = "I1" // an instance never became a Node in its time
	RuleNotStarted  = "I2" // the cloud could not start an instance
	RuleClaimed     = "I3" // an instance without a Node of its own may back a Node: never deleted
	RuleInstanceMin = "I4" // an instance that should go cannot: the group is at its minimum
	RuleShort       = "I5" // the cloud has not delivered the target in its time

	RuleStarting     = "I6" // a node has joined, and a taint, or a label, a resource or a volume limit that it lacks, sets it apart from its group's machines: that is passing, and pods count on the node
	RuleNeverStarted = "I7" // a node has not become in its time what its group's machines are: what it shows is the truth

	RuleUnneeded    = "D1"  // the node's pods have room elsewhere, for long enough
	RuleUnready     = "D2"  // the node has not been Ready for long enough
	RuleUnneededFor = "D3"  // unneeded, but not for long enough yet
	RuleBusy        = "D4"  // requests are above the utilisation threshold
	RuleOptOut      = "D5"  // the node is opted out of scale-down
	RuleBlocked     = "D6"  // pods block the drain: every blocker is named
	RuleNoRoom      = "D7"  // the node's pods have no room elsewhere
	RuleAtMin       = "D8"  // the group is at its minimum
	RuleInUse       = "D9"  // a pending pod or another node's pods count on this node
	RuleNotOurs     = "D10" // the node is marked for deletion or cordoned by somebody else
	RuleResume      = "D11" // a node that carries our mark goes on being drained
	RuleTookBack    = "D12" // the mark is taken back
	RuleBatch       = "D13" // enough nodes are on their way out at once
	RuleDraining    = "D14" // the drain waits
	RuleHalfMark    = "D15" // a cordon of ours, or what is left of one, without its mark: taken back
	RuleInstance    = "D16" // the node's instance is not running or not a member of its group
	RuleEmpty       = "D17" // terminate: no pod that could be moved is left
	RuleTotalsMin   = "D18" // the cluster is at its least cores, memory or extended resources
	RuleSoft        = "D19" // the scheduler is told to prefer other nodes, or no longer
	RuleRequested   = "D20" // somebody asked for the node to go
	RuleConsolidate = "D21" // nodes are replaced by fewer or cheaper machines
	RuleKeeps       = "D22" // the cloud ends no named instance of the group now (a rollout is under way): nothing of it is marked or ended
	RuleInterrupted = "D23" // the cloud ends the node's machine of its own accord (a spot interruption): the node is cordoned and its pods are evicted at once
	RuleCompletion  = "D24" // the node waits until pods that run to their end (safe-to-evict: on-completion) have ended
	RuleDrifted     = "D25" // the node is not what its group would start today: it is replaced
	RuleExpired     = "D26" // the node is older than nodes may become: it is replaced
	RuleSick        = "D27" // the node has been sick for long enough (not Ready, or one of the repair conditions): it is replaced
	RuleReplace     = "D28" // the agent orders a machine in place of a node whose pods have room nowhere else, and the node stays until the machine is Ready and has room for them
	RuleDisruption  = "D29" // a disruption budget of the group or of the cluster lets no further node go now
	RuleCanary      = "D30" // the node waits for the first machine that was started from its group's present source: the others follow when this machine is Ready and its pods are Ready
	RuleHalted      = "D31" // the rollout of the group's present source is halted: its first machine did not come, or pods crash on this machine and not on others
	RuleBreaker     = "D32" // too many nodes are sick at once: the agent replaces none of them for that
	RuleReplaceNode = "D33" // somebody asked for the node to be replaced
	RuleRolloutHeld = "D34" // an operator has paused the rollout of the group: no node of it is replaced because it is drifted or expired
	RuleForced      = "D35" // terminate: the drain of a node that is replaced did not end in its time, and the setting says that its machine ends with the pods that are left
	RuleElsewhere   = "D36" // somebody else replaces the machines of the group now (an instance refresh of AWS), or the cloud has not told yet whether: the agent replaces no node of it because it is drifted or expired
)
