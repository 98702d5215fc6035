package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

func (k *kubelet) name() string { return k.id.join.name }

// register creates the Node. One that exists already (a reboot, or a dead machine's
// of the same name) keeps its spec, as with a real kubelet; labels and status are
// brought up to date.
func (k *kubelet) register(ctx context.Context) error {
	node := k.node()
	_, err := k.core.Nodes().Create(ctx, node, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": node.Labels, "annotations": node.Annotations}})
	if err != nil {
		return err
	}
	if _, err := k.core.Nodes().Patch(ctx, k.name(), types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	return k.reportStatus(ctx)
}

// node is the Node as a kubelet registers it. Zone, region and instance type are
// there only if the user data asks for them in --node-labels.
func (k *kubelet) node() *corev1.Node {
	labels := nodeLabels(k.id.join.extraArgs["node-labels"])
	maps.Copy(labels, map[string]string{
		corev1.LabelHostname: k.name(), corev1.LabelOSStable: "linux", corev1.LabelArchStable: k.m.cfg.Arch,
		"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": k.m.cfg.Arch,
	})
	taints := slices.Concat(k.id.join.taints, k.m.cfg.Start.Taints)
	if k.id.join.extraArgs["cloud-provider"] == "external" {
		taints = append(taints[:len(taints):len(taints)], corev1.Taint{
			Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule})
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: k.name(), Labels: labels,
			Annotations: map[string]string{
				Annotation: k.server.address(),
				"volumes.kubernetes.io/controller-managed-attach-detach": "true",
			},
		},
		Spec:   corev1.NodeSpec{ProviderID: k.id.config.ProviderID, Taints: taints},
		Status: k.status(),
	}
}

func (k *kubelet) status() corev1.NodeStatus {
	capacity, allocatable := resourcesOf(k.shown(), k.id.config)
	return corev1.NodeStatus{
		Capacity:    capacity,
		Allocatable: allocatable,
		Conditions:  k.conditions(metav1.Now()),
		Addresses:   k.addresses(),
		DaemonEndpoints: corev1.NodeDaemonEndpoints{
			KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(k.server.port)},
		},
		NodeInfo: corev1.NodeSystemInfo{
			MachineID: strings.ReplaceAll(k.id.uuid, "-", ""), SystemUUID: k.id.uuid, BootID: k.bootID,
			KernelVersion: "6.6.0-played", OSImage: "played machine", ContainerRuntimeVersion: "containerd://2.2.5",
			KubeletVersion: kubeletVersion, OperatingSystem: "linux", Architecture: k.m.cfg.Arch,
		},
	}
}

// kubeletVersion is that of the pinned control plane.
const kubeletVersion = "v1.36.3"

// addresses: a kubelet without a cloud provider reports one address and its host
// name; the internal DNS name is what the cloud knows it by.
func (k *kubelet) addresses() []corev1.NodeAddress {
	return []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: k.m.cfg.Addresses[0].String()},
		{Type: corev1.NodeHostName, Address: k.name()},
		{Type: corev1.NodeInternalDNS, Address: k.m.cfg.Name},
	}
}

func (k *kubelet) conditions(now metav1.Time) []corev1.NodeCondition {
	k.mu.Lock()
	ready := k.ready
	k.mu.Unlock()
	out := []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"},
	}
	if !ready {
		r := &out[len(out)-1]
		r.Status, r.Reason = corev1.ConditionFalse, "KubeletNotReady"
		r.Message = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"
	}
	for i := range out {
		out[i].LastHeartbeatTime, out[i].LastTransitionTime = now, now
	}
	return out
}

// reportStatus patches the Node's status; a condition that did not change keeps its
// transition time.
func (k *kubelet) reportStatus(ctx context.Context) error {
	k.statusMu.Lock()
	defer k.statusMu.Unlock()
	node, err := k.core.Nodes().Get(ctx, k.name(), metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	status := k.status()
	for i := range status.Conditions {
		for _, old := range node.Status.Conditions {
			if c := &status.Conditions[i]; old.Type == c.Type && old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"capacity": status.Capacity, "allocatable": status.Allocatable, "conditions": status.Conditions,
		"addresses": status.Addresses, "nodeInfo": status.NodeInfo, "daemonEndpoints": status.DaemonEndpoints,
	}})
	if err != nil {
		return err
	}
	_, err = k.core.Nodes().PatchStatus(ctx, k.name(), patch)
	return err
}

func (k *kubelet) renewLease(ctx context.Context, seconds int32) error {
	api := k.leases.Leases(corev1.NamespaceNodeLease)
	now := metav1.NowMicro()
	patch := []byte(`{"spec":{"renewTime":"` + now.UTC().Format(metav1.RFC3339Micro) + `","holderIdentity":"` + k.name() +
		`","leaseDurationSeconds":` + strconv.Itoa(int(seconds)) + `}}`)
	_, err := api.Patch(ctx, k.name(), types.MergePatchType, patch, metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	node, err := k.core.Nodes().Get(ctx, k.name(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	name := k.name()
	_, err = api.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceNodeLease, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID}}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}, metav1.CreateOptions{})
	return err
}

// resourcesOf computes capacity and allocatable as the kubelet's container manager
// does (pkg/kubelet/cm/node_container_manager_linux.go), from the configuration that
// the user data made.
func resourcesOf(cfg Config, config *kubeletv1beta1.KubeletConfiguration) (capacity, allocatable corev1.ResourceList) {
	capacity = corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(cfg.Capacity.MilliCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(cfg.Capacity.Memory, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(int64(maxPods(config)), resource.DecimalSI),
		"hugepages-1Gi":       *resource.NewQuantity(0, resource.BinarySI),
		"hugepages-2Mi":       *resource.NewQuantity(0, resource.BinarySI),
	}
	if cfg.Capacity.EphemeralStorage > 0 {
		capacity[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(cfg.Capacity.EphemeralStorage, resource.BinarySI)
	}
	for name, n := range cfg.Capacity.Extended {
		capacity[corev1.ResourceName(name)] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	allocatable = corev1.ResourceList{}
	for name, have := range capacity {
		left := have.DeepCopy()
		for _, reserved := range []map[string]string{config.KubeReserved, config.SystemReserved} {
			if q, err := resource.ParseQuantity(reserved[string(name)]); err == nil {
				left.Sub(q)
			}
		}
		switch name {
		case corev1.ResourceMemory:
			left.Sub(threshold(config, "memory.available", "100Mi", have))
		case corev1.ResourceEphemeralStorage:
			left.Sub(threshold(config, "nodefs.available", "10%", have))
		}
		if left.Sign() < 0 {
			left.Set(0)
		}
		allocatable[name] = left
	}
	return capacity, allocatable
}

func maxPods(config *kubeletv1beta1.KubeletConfiguration) int32 {
	if config.MaxPods > 0 {
		return config.MaxPods
	}
	return 110
}

// threshold is a hard eviction threshold of the capacity. A configuration that sets
// any threshold gets no defaults for the others. The float32 is the kubelet's own.
func threshold(config *kubeletv1beta1.KubeletConfiguration, signal, fallback string, capacity resource.Quantity) resource.Quantity {
	value := config.EvictionHard[signal]
	if len(config.EvictionHard) == 0 {
		value = fallback
	}
	if percent, ok := strings.CutSuffix(value, "%"); ok {
		f, err := strconv.ParseFloat(percent, 32)
		if err != nil {
			return resource.Quantity{}
		}
		return *resource.NewQuantity(int64(math.Trunc(float64(capacity.Value())*float64(float32(f)/100))), resource.BinarySI)
	}
	q, err := resource.ParseQuantity(value)
	if err != nil {
		return resource.Quantity{}
	}
	return q
}

// podNetwork is a made-up range for pod addresses, one /24 per machine; nobody ever
// dials them.
func (k *kubelet) podIP(n int) string {
	h := uint32(2166136261)
	for _, c := range []byte(k.m.cfg.InstanceID) {
		h = (h ^ uint32(c)) * 16777619
	}
	return fmt.Sprintf("100.%d.%d.%d", 64+h%64, h>>8%256, 1+n%250)
}

func seconds(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
