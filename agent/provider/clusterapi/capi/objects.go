package capi

import (
	"cmp"
	"encoding/json"
	"time"
)

// Meta is the metadata of every object. This type and the following ones have only the
// fields that the agent uses, in both contracts of Cluster API, so that a list of a
// thousand machines is decoded without the rest.
type Meta struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace"`
	UID               string            `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
	CreationTimestamp time.Time         `json:"creationTimestamp"`
	DeletionTimestamp *time.Time        `json:"deletionTimestamp"`
	OwnerReferences   []OwnerRef        `json:"ownerReferences"`
}

// OwnerRef is one of an object's owners.
type OwnerRef struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// Owner returns the UID of the first owner of that kind; "": there is none.
func (m *Meta) Owner(kind string) string {
	for _, o := range m.OwnerReferences {
		if o.Kind == kind {
			return o.UID
		}
	}
	return ""
}

// Ref is a reference in either contract: v1beta1 writes apiVersion, v1beta2 apiGroup.
type Ref struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Namespace  string `json:"namespace"`
	APIVersion string `json:"apiVersion"`
	APIGroup   string `json:"apiGroup"`
}

// Taint is a taint of a machine template.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// Condition is a condition of either contract; only v1beta1 has a Severity.
type Condition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"`
	Severity           string    `json:"severity"`
	Reason             string    `json:"reason"`
	Message            string    `json:"message"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
}

// Trouble has the fields for failures: v1beta1 has them at the top of the status, v1beta2
// has only conditions there and the old fields under deprecated.
type Trouble struct {
	FailureReason  string      `json:"failureReason"`
	FailureMessage string      `json:"failureMessage"`
	Conditions     []Condition `json:"conditions"`
	V1Beta2        struct {
		Conditions []Condition `json:"conditions"`
	} `json:"v1beta2"`
	Deprecated struct {
		V1Beta1 struct {
			FailureReason  string      `json:"failureReason"`
			FailureMessage string      `json:"failureMessage"`
			Conditions     []Condition `json:"conditions"`
		} `json:"v1beta1"`
	} `json:"deprecated"`
}

// AllConditions returns the conditions of both contracts, the newer contract's first.
func (t *Trouble) AllConditions() []Condition {
	out := append([]Condition(nil), t.V1Beta2.Conditions...)
	out = append(out, t.Conditions...)
	return append(out, t.Deprecated.V1Beta1.Conditions...)
}

// Failure returns the failure in the status of either contract; "", "": there is none.
func (t *Trouble) Failure() (reason, text string) {
	old := t.Deprecated.V1Beta1
	return cmp.Or(t.FailureReason, old.FailureReason), cmp.Or(t.FailureMessage, old.FailureMessage)
}

// Scalable is a MachineDeployment, MachineSet or MachinePool.
type Scalable struct {
	Meta `json:"metadata"`
	Spec struct {
		ClusterName string `json:"clusterName"`
		Replicas    *int   `json:"replicas"`
		Template    struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Spec struct {
				Bootstrap struct {
					ConfigRef      Ref    `json:"configRef"`
					DataSecretName string `json:"dataSecretName"`
				} `json:"bootstrap"`
				InfrastructureRef Ref     `json:"infrastructureRef"`
				Version           string  `json:"version"`
				FailureDomain     string  `json:"failureDomain"`
				Taints            []Taint `json:"taints"`
			} `json:"spec"`
		} `json:"template"`
		ProviderIDList []string `json:"providerIDList"` // MachinePool
		FailureDomains []string `json:"failureDomains"` // MachinePool: its machines are spread over them
	} `json:"spec"`
	Status struct {
		Replicas *int `json:"replicas"`
		Trouble
	} `json:"status"`

	Kind    string `json:"-"` // set by the reader, because items of a list have none
	Cluster string `json:"-"` // the name of its Cluster, from the spec or a label
}

// Target returns the desired size. Without Cluster API's defaulting, a topology that
// leaves replicas unset has none until the first write; then it is the current size.
func (o *Scalable) Target() int {
	switch {
	case o.Spec.Replicas != nil:
		return *o.Spec.Replicas
	case o.Status.Replicas != nil:
		return *o.Status.Replicas
	}
	return 0
}

// Machine is one machine of a group.
type Machine struct {
	Meta `json:"metadata"`
	Spec struct {
		ProviderID        string `json:"providerID"`
		FailureDomain     string `json:"failureDomain"`
		InfrastructureRef Ref    `json:"infrastructureRef"`
	} `json:"spec"`
	Status struct {
		Phase         string `json:"phase"`
		FailureDomain string `json:"failureDomain"`
		NodeRef       struct {
			Name string `json:"name"`
		} `json:"nodeRef"`
		Addresses []struct {
			Type    string `json:"type"`
			Address string `json:"address"`
		} `json:"addresses"`
		Trouble
	} `json:"status"`
}

// Cluster has the pause of a cluster, and the replicas that its topology sets itself.
type Cluster struct {
	Meta `json:"metadata"`
	Spec struct {
		Paused   bool `json:"paused"`
		Topology struct {
			Workers struct {
				MachineDeployments []TopologyGroup `json:"machineDeployments"`
				MachinePools       []TopologyGroup `json:"machinePools"`
			} `json:"workers"`
		} `json:"topology"`
	} `json:"spec"`
}

// TopologyGroup is a group of a Cluster's topology.
type TopologyGroup struct {
	Name     string `json:"name"`
	Replicas *int   `json:"replicas"`
}

// Infrastructure is an infrastructure machine template (or an infrastructure machine
// pool), with the fields of Cluster API's "opt-in autoscaling from zero".
type Infrastructure struct {
	Meta   `json:"metadata"`
	Spec   json.RawMessage `json:"spec"`
	Status struct {
		Capacity map[string]json.RawMessage `json:"capacity"`
		NodeInfo struct {
			Architecture    string `json:"architecture"`
			OperatingSystem string `json:"operatingSystem"`
		} `json:"nodeInfo"`
	} `json:"status"`
}

// Node is a Node of the workload cluster.
type Node struct {
	Meta   `json:"metadata"`
	Status struct {
		Capacity    map[string]json.RawMessage `json:"capacity"`
		Allocatable map[string]json.RawMessage `json:"allocatable"`
	} `json:"status"`
}

// typeWords are the fields of infrastructure providers for the type of a machine: AWS and
// others instanceType, OpenStack flavor, Azure vmSize, Hetzner type or serverType.
var typeWords = []string{"instanceType", "flavor", "vmSize", "machineType", "serverType", "type", "size"}

// MachineType returns the type of the machines; "": the template names none.
func (i *Infrastructure) MachineType() string {
	type inner struct {
		Spec           map[string]json.RawMessage `json:"spec"`
		VMSize         string                     `json:"vmSize"`
		LaunchTemplate map[string]json.RawMessage `json:"awsLaunchTemplate"`
	}
	var s struct {
		Template       inner                      `json:"template"`
		LaunchTemplate map[string]json.RawMessage `json:"awsLaunchTemplate"`
	}
	if json.Unmarshal(i.Spec, &s) != nil {
		return ""
	}
	for _, place := range []map[string]json.RawMessage{s.Template.Spec, s.LaunchTemplate} {
		for _, word := range typeWords {
			var v string
			if json.Unmarshal(place[word], &v) == nil && v != "" {
				return v
			}
		}
	}
	return s.Template.VMSize
}
