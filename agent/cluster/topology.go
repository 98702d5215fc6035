package cluster

// Selector selects by labels: all requirements hold together. A nil *Selector
// matches nothing, an empty one everything, as in the API. Operators are In, NotIn,
// Exists and DoesNotExist.
type Selector struct {
	Requirements []Requirement `json:"requirements,omitempty"`
}

// PodTerm is one required term of pod affinity or anti-affinity. The selector
// contains matchLabelKeys and mismatchLabelKeys, as the API server merges them.
type PodTerm struct {
	TopologyKey string    `json:"topologyKey"`
	Selector    *Selector `json:"selector,omitempty"`
	// Namespaces are those that the term names; the pod's own where it names none and
	// selects none. Sorted.
	Namespaces []string `json:"namespaces,omitempty"`
	// NamespaceSelector adds namespaces by their labels (Snapshot.Namespaces).
	NamespaceSelector *Selector `json:"namespaceSelector,omitempty"`
}

// Spread is one topologySpreadConstraint with whenUnsatisfiable DoNotSchedule.
// matchLabelKeys are merged into Selector. The zero policies are the API's defaults.
type Spread struct {
	TopologyKey        string    `json:"topologyKey"`
	MaxSkew            int       `json:"maxSkew"`
	MinDomains         int       `json:"minDomains,omitempty"` // 0: not given, as 1
	Selector           *Selector `json:"selector,omitempty"`
	IgnoreNodeAffinity bool      `json:"ignoreNodeAffinity,omitempty"` // nodeAffinityPolicy: Ignore
	HonorTaints        bool      `json:"honorTaints,omitempty"`        // nodeTaintsPolicy: Honor
}

// Volume is what one volume of a pod demands of the pod's node.
type Volume struct {
	// Claim is "namespace/name" of the PersistentVolumeClaim.
	Claim string `json:"claim,omitempty"`
	// Affinity is the node affinity of the bound PersistentVolume, terms OR-ed; nil: none.
	Affinity []NodeTerm `json:"affinity,omitzero"`
	// Zones are the zone and region labels of the bound PersistentVolume (VolumeZone).
	Zones []Requirement `json:"zones,omitempty"`
	// Topologies are the allowedTopologies of the StorageClass of a claim that waits for
	// its first consumer, terms OR-ed; nil: anywhere.
	Topologies []NodeTerm `json:"topologies,omitzero"`
	// Driver and Handle count against the attach limit of a CSI driver on a node; a
	// handle that is on the node already counts once. Empty: it counts nowhere.
	Driver string `json:"driver,omitempty"`
	Handle string `json:"handle,omitempty"`
	// OnePod tells access mode ReadWriteOncePod: no two pods share the claim.
	OnePod bool `json:"onePod,omitempty"`
	// Refused says in kube-scheduler's words why no node can take the pod now (claim not
	// found, unbound immediate claim); empty: some may.
	Refused string `json:"refused,omitempty"`
}

// Namespace is a namespace's name and labels.
type Namespace struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
}
