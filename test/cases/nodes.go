package cases

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/retry"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine/ec2"
)

const (
	region     = "eu-west-1"
	defaultMax = 10
	// kernelShare is what a kernel shows of the nominal memory; the agent assumes the same of a
	// type that it has not seen.
	kernelShare = 0.925
	// What the kubelets keep by the user data's defaults, and the default threshold of memory.
	reservedMilliCPU = 200
	reservedMemory   = 512<<20 + 100<<20

	templateTag = "k8s.io/cluster-autoscaler/node-template/"
)

// startCloud makes an AWS with the case's groups.
func (s *scene) startCloud() (err error) {
	// A case starts where its machines run: nothing takes time.
	s.cloud, err = s.t.cloud(aws.Options{Region: region, LaunchDelay: -1, BootDelay: -1, TerminateDelay: -1, OnState: s.onState})
	if err != nil {
		return err
	}
	for _, g := range s.c.Groups {
		s.cloud.PutLaunchTemplate(aws.LaunchTemplate{Name: g.Name, InstanceType: g.Type, HTTPTokens: "required", HopLimit: 1})
		group := aws.Group{Name: g.Name, Min: g.Min, Max: defaultMax, Desired: g.Desired, LaunchTemplate: g.Name, Zones: g.Zones,
			ProtectNew: true, KeepTags: true, SuspendedProcesses: []string{"AZRebalance"}, Tags: map[string]string{
				"k8s.io/cluster-autoscaler/enabled": "", "k8s.io/cluster-autoscaler/" + clusterName: ""}}
		if g.Max != nil {
			group.Max = *g.Max
		}
		if len(g.Zones) == 0 {
			group.Zones = []string{"a"}
		}
		maps.Copy(group.Tags, g.Tags)
		if err := s.cloud.PutGroup(group); err != nil {
			return err
		}
	}
	return nil
}

// onState takes the Node of a machine and its pods away when the machine ends, as the cloud's
// node controller and the garbage collector do.
func (s *scene) onState(i aws.Instance, _, now string) {
	s.mu.Lock()
	name := s.made[i.ID]
	s.mu.Unlock()
	if now != "terminated" || name == "" {
		return
	}
	ctx, core, atOnce := context.Background(), s.t.client.CoreV1(), int64(0)
	err := core.Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	pods, errPods := s.pods(ctx)
	errs := []error{ignoreNotFound(err), errPods}
	for _, p := range pods {
		if p.Spec.NodeName == name {
			errs = append(errs, ignoreNotFound(core.Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &atOnce})))
		}
	}
	if err := errors.Join(errs...); err != nil {
		s.fault("the Node of a machine that ended: %v", err)
	}
}

// end ends the machine of a Node, and its group wants one less.
func (s *scene) end(ctx context.Context, name string) error {
	id := ""
	s.mu.Lock()
	for instance, node := range s.made {
		if node == name {
			id = instance
		}
	}
	s.mu.Unlock()
	i, ok := s.cloud.Instance(id)
	g, of := s.cloud.Group(i.GroupName)
	if !ok || !of {
		return fmt.Errorf("the machine of %s is gone", name)
	}
	g.Group.Desired, g.Group.KeepTags = g.Desired-1, true // its machines are protected: none goes by that
	if err := s.cloud.PutGroup(g.Group); err != nil {
		return err
	}
	if err := s.cloud.TerminateInstance(id); err != nil {
		return err
	}
	return s.t.poll(ctx, name+" to go", func() (bool, error) {
		_, err := s.t.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), ignoreNotFound(err)
	})
}

// resize sets a group's desired capacity and waits for its machines.
func (s *scene) resize(ctx context.Context, group string, desired int) error {
	g, ok := s.cloud.Group(group)
	if !ok {
		return fmt.Errorf("there is no group %s", group)
	}
	g.Group.Desired = desired
	g.Group.KeepTags = true
	if err := s.cloud.PutGroup(g.Group); err != nil {
		return err
	}
	return s.launched(ctx)
}

// launched waits until each group has the machines that it wants.
func (s *scene) launched(ctx context.Context) error {
	return s.t.poll(ctx, "the machines of the groups", func() (bool, error) {
		for _, g := range s.cloud.Groups() {
			if g.Lifecycles()["InService"] < g.Desired {
				return false, nil
			}
		}
		return true, nil
	})
}

// joinListed makes the Nodes of the file, each of the next machine of its group.
func (s *scene) joinListed(ctx context.Context) error {
	for i, n := range s.c.Nodes {
		free := s.waiting(n.Group)
		if len(free) == 0 {
			return fmt.Errorf("node %d: group %s has no machine left", i, n.Group)
		}
		if err := s.join(ctx, n, free[0], false); err != nil {
			return err
		}
	}
	return s.tainted(ctx)
}

// joinNew makes a Node of each machine that has none, as its group says.
func (s *scene) joinNew(ctx context.Context) error {
	for _, g := range s.c.Groups {
		for _, i := range s.waiting(g.Name) {
			if s.left[i.ID] { // the file leaves it without a Node
				continue
			}
			n := Node{}
			if g.Joins != nil {
				n = *g.Joins
			}
			if err := s.join(ctx, n, i, true); err != nil {
				return err
			}
		}
	}
	return s.becomeReady(ctx)
}

// becomeReady makes the Nodes that have just joined ready, once the DaemonSets have their pods
// there: these tolerate the taint of a Node that is not ready, so that they are first on real
// machines too.
func (s *scene) becomeReady(ctx context.Context) error {
	if len(s.young) == 0 {
		return nil
	}
	if err := s.daemons(ctx); err != nil {
		return err
	}
	for _, name := range s.young {
		if err := s.change(ctx, name, nil, setReady); err != nil {
			return err
		}
	}
	s.young = nil
	return s.tainted(ctx)
}

func setReady(n *corev1.Node) {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			c.Status, c.Reason, c.LastTransitionTime = corev1.ConditionTrue, "KubeletReady", metav1.Now()
		}
	}
}

// change changes a Node, and its status.
func (s *scene) change(ctx context.Context, name string, node, status func(*corev1.Node)) error {
	api := s.t.client.CoreV1().Nodes()
	for i, put := range []func(*corev1.Node){node, status} {
		if put == nil {
			continue
		}
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			n, err := api.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			put(n)
			if i == 0 {
				_, err = api.Update(ctx, n, metav1.UpdateOptions{})
			} else {
				_, err = api.UpdateStatus(ctx, n, metav1.UpdateOptions{})
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("change Node %s: %w", name, err)
		}
	}
	return nil
}

// waiting are a group's machines in service that have no Node, oldest first.
func (s *scene) waiting(group string) []aws.Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []aws.Instance
	g, _ := s.cloud.Group(group)
	for _, i := range g.Instances {
		if i.Lifecycle == "InService" && s.made[i.ID] == "" {
			out = append(out, i)
		}
	}
	return out
}

// tainted waits until the node controller has taken the taint away that the API server gives
// to each new Node; a Node that is to be NotReady keeps it.
func (s *scene) tainted(ctx context.Context) error {
	return s.t.poll(ctx, "the taints of new Nodes", func() (bool, error) {
		list, err := s.t.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, n := range list.Items {
			ready, not := false, false
			for _, c := range n.Status.Conditions {
				ready = ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			}
			for _, t := range n.Spec.Taints {
				not = not || t.Key == corev1.TaintNodeNotReady
			}
			if ready == not {
				return false, nil
			}
		}
		return true, nil
	})
}

// join makes a Node. whole gives it all that its type and its group's tags promise; a Node of
// the file has what the file says.
func (s *scene) join(ctx context.Context, n Node, i aws.Instance, whole bool) error {
	name := fmt.Sprintf("node-%d", len(s.nodes))
	node := blank(name, i)
	if whole {
		s.promise(node, i)
	}
	for k, v := range n.Labels {
		if v == nil {
			delete(node.Labels, k)
		} else {
			node.Labels[k] = *v
		}
	}
	maps.Copy(node.Annotations, n.Anno)
	node.Spec.Taints = append(node.Spec.Taints, n.Taints...)
	for k, q := range n.Cap {
		node.Status.Capacity[corev1.ResourceName(k)], node.Status.Allocatable[corev1.ResourceName(k)] = q, q
	}
	node.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Now().Add(-n.ReadyFor.Duration))
	if !n.NotReady && whole {
		s.young = append(s.young, name)
	}
	if n.NotReady || whole {
		node.Status.Conditions[0].Status, node.Status.Conditions[0].Reason = corev1.ConditionFalse, "KubeletNotReady"
	}
	s.mu.Lock()
	s.made[i.ID] = name
	s.mu.Unlock()
	s.nodes = append(s.nodes, name)
	if _, err := s.t.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{FieldValidation: "Strict"}); err != nil {
		return fmt.Errorf("make Node %s: %w", name, err)
	}
	if err := s.attach(ctx, name, n.Volumes); err != nil {
		return err
	}
	for _, p := range n.Phases {
		s.phases.Go(func() { s.pass(name, p) })
	}
	return nil
}

// blank is a Ready Node of a machine as its kubelet registers it.
func blank(name string, i aws.Instance) *corev1.Node {
	arch := map[string]string{"arm64": "arm64"}[i.Spec.Arch]
	if arch == "" {
		arch = "amd64"
	}
	cpu := int64(i.Spec.VCPU) * 1000
	memory := int64(float64(int64(i.Spec.MemoryMiB)<<20) * kernelShare)
	disk := int64(ec2.DiskBytes)
	capacity := func(milliCPU, memory, disk int64) corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU:              *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
			corev1.ResourceMemory:           *resource.NewQuantity(memory, resource.BinarySI),
			corev1.ResourceEphemeralStorage: *resource.NewQuantity(disk, resource.BinarySI),
			corev1.ResourcePods:             *resource.NewQuantity(110, resource.DecimalSI),
		}
	}
	now := metav1.Now()
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: arch,
			corev1.LabelInstanceTypeStable: i.Type, corev1.LabelTopologyZone: i.Zone, corev1.LabelTopologyRegion: i.Region,
		}},
		Spec: corev1.NodeSpec{ProviderID: "aws:///" + i.Zone + "/" + i.ID},
		Status: corev1.NodeStatus{
			Capacity: capacity(cpu, memory, disk), Allocatable: capacity(cpu-reservedMilliCPU, memory-reservedMemory, disk*9/10),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
				LastHeartbeatTime: now, LastTransitionTime: now}},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: i.PrivateIP}, {Type: corev1.NodeHostName, Address: name}},
			NodeInfo:  corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", OperatingSystem: "linux", Architecture: arch},
		},
	}
}

// promise gives a Node the GPUs of its type and what its group's tags say of it.
func (s *scene) promise(node *corev1.Node, i aws.Instance) {
	put := func(name string, q resource.Quantity) {
		node.Status.Capacity[corev1.ResourceName(name)], node.Status.Allocatable[corev1.ResourceName(name)] = q, q
	}
	if i.Spec.GPUs > 0 && i.Spec.GPUMaker == "NVIDIA" {
		put("nvidia.com/gpu", *resource.NewQuantity(int64(i.Spec.GPUs), resource.DecimalSI))
	}
	g, _ := s.cloud.Group(i.GroupName)
	for tag, value := range g.Tags {
		rest, ok := strings.CutPrefix(tag, templateTag)
		if !ok {
			continue
		}
		kind, name, _ := strings.Cut(rest, "/")
		switch kind {
		case "label":
			if len(validation.IsValidLabelValue(value)) == 0 { // no Node can have another
				node.Labels[name] = value
			}
		case "taint":
			value, effect, _ := strings.Cut(value, ":")
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: name, Value: value, Effect: corev1.TaintEffect(effect)})
		case "resources":
			if q, err := resource.ParseQuantity(value); err == nil {
				put(name, q)
			}
		}
	}
}

// pass changes a Node when its phase has come.
func (s *scene) pass(name string, p Phase) {
	select {
	case <-time.After(p.After.Duration):
	case <-s.ended:
		return
	}
	err := s.change(context.Background(), name, func(n *corev1.Node) {
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return slices.Contains(p.Untaint, t.Key) })
		maps.Copy(n.Labels, p.Labels)
	}, func(n *corev1.Node) {
		for k, q := range p.Cap {
			n.Status.Capacity[corev1.ResourceName(k)], n.Status.Allocatable[corev1.ResourceName(k)] = q, q
		}
		if p.Ready {
			setReady(n)
		}
	})
	if !apierrors.IsNotFound(err) && err != nil {
		s.fault("a phase could not be played: %v", err)
	}
}
