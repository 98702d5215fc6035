package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Start is how a Node becomes what it is to be after its kubelet has registered it: a network plugin
// takes a taint off, feature discovery sets labels, a device plugin reports its devices, a CSI driver
// registers with its limit. The zero value is a Node that is all of it at once.
type Start struct {
	Taints    []corev1.Taint   // the kubelet registers with them
	Resources map[string]int64 // what the kubelet reports of these until a phase says more; -1: nothing
	Phases    []Phase
	// Client is that of the agents which change the Node: a kubelet may not take a taint off.
	Client kubernetes.Interface
}

// Phase is a step of a start.
type Phase struct {
	After     time.Duration // from the Node's registration
	Taint     []corev1.Taint
	Untaint   []string // keys
	Labels    map[string]string
	Resources map[string]int64 // what the kubelet reports from now on
	Volumes   map[string]int32 // limits of CSI drivers
}

// begin goes through the phases of a start. One that fails is tried again until the machine ends.
func (k *kubelet) begin(ctx context.Context) {
	phases, began := slices.Clone(k.m.cfg.Start.Phases), time.Now()
	slices.SortStableFunc(phases, func(a, b Phase) int { return int(a.After - b.After) })
	for _, p := range phases {
		if !pause(ctx, p.After-time.Since(began)) || !k.retry(ctx, "start", func(ctx context.Context) error { return k.phase(ctx, p) }) {
			return
		}
	}
}

func (k *kubelet) phase(ctx context.Context, p Phase) error {
	if len(p.Resources) > 0 {
		k.mu.Lock()
		if k.devices == nil {
			k.devices = map[string]int64{}
		}
		maps.Copy(k.devices, p.Resources)
		k.mu.Unlock()
		if err := k.reportStatus(ctx); err != nil {
			return err
		}
	}
	if len(p.Taint)+len(p.Untaint) > 0 {
		if err := k.changeTaints(ctx, p); err != nil {
			return err
		}
	}
	if len(p.Labels) > 0 {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": p.Labels}})
		if err != nil {
			return err
		}
		if _, err := k.m.cfg.Start.Client.CoreV1().Nodes().Patch(ctx, k.name(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "feature-discovery"}); err != nil {
			return err
		}
	}
	if len(p.Volumes) > 0 {
		return k.registerDrivers(ctx, p.Volumes)
	}
	return nil
}

func (k *kubelet) changeTaints(ctx context.Context, p Phase) error {
	nodes := k.m.cfg.Start.Client.CoreV1().Nodes()
	n, err := nodes.Get(ctx, k.name(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	n.Spec.Taints = append(slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return slices.Contains(p.Untaint, t.Key) }), p.Taint...)
	_, err = nodes.Update(ctx, n, metav1.UpdateOptions{FieldManager: "network-plugin"})
	return err
}

// registerDrivers writes the Node's CSINode, as its kubelet does when a driver registers.
func (k *kubelet) registerDrivers(ctx context.Context, limits map[string]int32) error {
	node, err := k.core.Nodes().Get(ctx, k.name(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	api := k.m.cfg.Start.Client.StorageV1().CSINodes()
	n, err := api.Get(ctx, k.name(), metav1.GetOptions{})
	fresh := apierrors.IsNotFound(err)
	switch {
	case fresh:
		n = &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: k.name(), OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: k.name(), UID: node.UID}}}}
	case err != nil:
		return fmt.Errorf("register CSI drivers: %w", err)
	}
	for name, count := range limits {
		if !slices.ContainsFunc(n.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == name }) {
			n.Spec.Drivers = append(n.Spec.Drivers, storagev1.CSINodeDriver{Name: name, NodeID: k.m.cfg.InstanceID, Allocatable: &storagev1.VolumeNodeResources{Count: &count}})
		}
	}
	if fresh {
		_, err = api.Create(ctx, n, metav1.CreateOptions{})
	} else {
		_, err = api.Update(ctx, n, metav1.UpdateOptions{})
	}
	return err
}

// shown is the machine's capacity as its device plugins have reported it by now.
func (k *kubelet) shown() Config {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.reported()
}

// reported is shown for a caller that holds the lock.
func (k *kubelet) reported() Config {
	cfg := k.m.cfg
	if len(cfg.Start.Resources)+len(k.devices) == 0 {
		return cfg
	}
	extended := maps.Clone(cfg.Capacity.Extended)
	if extended == nil {
		extended = map[string]int64{}
	}
	maps.Copy(extended, cfg.Start.Resources)
	maps.Copy(extended, k.devices)
	maps.DeleteFunc(extended, func(_ string, n int64) bool { return n < 0 })
	cfg.Capacity.Extended = extended
	return cfg
}
