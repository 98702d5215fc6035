package clusterapi

import (
	"encoding/json"
	"time"
)

// The objects below hold what this package uses of Cluster API's, in both contracts:
// a list of a thousand machines is decoded without the rest.

type meta struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace"`
	UID               string            `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
	CreationTimestamp time.Time         `json:"creationTimestamp"`
	DeletionTimestamp *time.Time        `json:"deletionTimestamp"`
	OwnerReferences   []ownerRef        `json:"ownerReferences"`
}

type ownerRef struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// owner is the UID of the first owner of that kind, empty when there is none.
func (m *meta) owner(kind string) string {
	for _, o := range m.OwnerReferences {
		if o.Kind == kind {
			return o.UID
		}
	}
	return ""
}

// ref is a reference in either contract: v1beta1 writes apiVersion, v1beta2 apiGroup.
type ref struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Namespace  string `json:"namespace"`
	APIVersion string `json:"apiVersion"`
	APIGroup   string `json:"apiGroup"`
}

type taint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// condition is one of either contract; Severity is v1beta1's.
type condition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"`
	Severity           string    `json:"severity"`
	Reason             string    `json:"reason"`
	Message            string    `json:"message"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
}

// trouble is where the contracts keep failures: v1beta1 at the top of the status,
// v1beta2 there only as conditions, with the old ones under deprecated.
type trouble struct {
	FailureReason  string      `json:"failureReason"`
	FailureMessage string      `json:"failureMessage"`
	Conditions     []condition `json:"conditions"`
	V1Beta2        struct {
		Conditions []condition `json:"conditions"`
	} `json:"v1beta2"`
	Deprecated struct {
		V1Beta1 struct {
			FailureReason  string      `json:"failureReason"`
			FailureMessage string      `json:"failureMessage"`
			Conditions     []condition `json:"conditions"`
		} `json:"v1beta1"`
	} `json:"deprecated"`
}

// conditions are all that stand anywhere, the newer contract's first.
func (t *trouble) conditions() []condition {
	out := append([]condition(nil), t.V1Beta2.Conditions...)
	out = append(out, t.Conditions...)
	return append(out, t.Deprecated.V1Beta1.Conditions...)
}

// scalable is a MachineDeployment, MachineSet or MachinePool.
type scalable struct {
	meta `json:"metadata"`
	Spec struct {
		ClusterName string `json:"clusterName"`
		Replicas    *int   `json:"replicas"`
		Template    struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Spec struct {
				Bootstrap struct {
					ConfigRef      ref    `json:"configRef"`
					DataSecretName string `json:"dataSecretName"`
				} `json:"bootstrap"`
				InfrastructureRef ref     `json:"infrastructureRef"`
				Version           string  `json:"version"`
				FailureDomain     string  `json:"failureDomain"`
				Taints            []taint `json:"taints"`
			} `json:"spec"`
		} `json:"template"`
		ProviderIDList []string `json:"providerIDList"` // MachinePool
	} `json:"spec"`
	Status struct {
		Replicas *int `json:"replicas"`
		trouble
	} `json:"status"`

	kind    string
	cluster string
}

// target is what the group was asked for. A topology that leaves replicas open, on a
// management cluster without Cluster API's defaulting, has none until it is first set:
// then it is what is there.
func (o *scalable) target() int {
	switch {
	case o.Spec.Replicas != nil:
		return *o.Spec.Replicas
	case o.Status.Replicas != nil:
		return *o.Status.Replicas
	}
	return 0
}

type machineObject struct {
	meta `json:"metadata"`
	Spec struct {
		ProviderID        string `json:"providerID"`
		FailureDomain     string `json:"failureDomain"`
		InfrastructureRef ref    `json:"infrastructureRef"`
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
		trouble
	} `json:"status"`
}

// clusterObject is a Cluster: whether it is paused, and which replicas its topology
// sets itself.
type clusterObject struct {
	meta `json:"metadata"`
	Spec struct {
		Paused   bool `json:"paused"`
		Topology struct {
			Workers struct {
				MachineDeployments []topologyGroup `json:"machineDeployments"`
				MachinePools       []topologyGroup `json:"machinePools"`
			} `json:"workers"`
		} `json:"topology"`
	} `json:"spec"`
}

type topologyGroup struct {
	Name     string `json:"name"`
	Replicas *int   `json:"replicas"`
}

// infraObject is an infrastructure machine template (or an infrastructure machine
// pool) as far as Cluster API's "opt-in autoscaling from zero" describes it.
type infraObject struct {
	meta   `json:"metadata"`
	Spec   json.RawMessage `json:"spec"`
	Status struct {
		Capacity map[string]json.RawMessage `json:"capacity"`
		NodeInfo struct {
			Architecture    string `json:"architecture"`
			OperatingSystem string `json:"operatingSystem"`
		} `json:"nodeInfo"`
	} `json:"status"`
}

// nodeObject is a Node of the workload cluster.
type nodeObject struct {
	meta   `json:"metadata"`
	Status struct {
		Capacity    map[string]json.RawMessage `json:"capacity"`
		Allocatable map[string]json.RawMessage `json:"allocatable"`
	} `json:"status"`
}
