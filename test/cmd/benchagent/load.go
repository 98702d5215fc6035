package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"golang.org/x/sync/errgroup"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// load fills a cluster and keeps it busy. Its nodes are instances of the cloud without a
// machine behind them: it renews their Leases itself.
type load struct {
	client kubernetes.Interface
	cloud  *aws.Cloud
	pods   int // of each node
	nodes  []string

	mu   sync.Mutex
	live []string // pods, the oldest first
	last int      // serial number of the last pod
}

// padding brings a pod to the 3.4 KB of a usual one.
var padding = strings.Repeat("x", 2000)

func newLoad(cfg *rest.Config, cloud *aws.Cloud, pods int) (*load, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = 5000, 5000
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(cfg)
	return &load{client: client, cloud: cloud, pods: pods}, err
}

// each runs do for 0 to n-1, some at a time.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(32)
	for i := range n {
		g.Go(func() error { return do(ctx, i) })
	}
	return g.Wait()
}

// fill makes a Node and its pods for each instance of the cloud.
func (l *load) fill(ctx context.Context) error {
	instances := l.cloud.Instances()
	for _, i := range instances {
		l.nodes = append(l.nodes, i.PrivateDNS)
	}
	err := each(ctx, len(instances), func(ctx context.Context, n int) error { return l.node(ctx, instances[n]) })
	if err != nil {
		return err
	}
	return each(ctx, len(instances)*l.pods, func(ctx context.Context, n int) error { return l.pod(ctx, n%len(instances)) })
}

func (l *load) node(ctx context.Context, i aws.Instance) error {
	amount := corev1.ResourceList{"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110"), "ephemeral-storage": resource.MustParse("100Gi")}
	now := metav1.Now()
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: i.PrivateDNS, Labels: map[string]string{
			"kubernetes.io/hostname": i.PrivateDNS, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
			"topology.kubernetes.io/zone": i.Zone, "node.kubernetes.io/instance-type": i.Type}},
		Spec: corev1.NodeSpec{ProviderID: "aws:///" + i.Zone + "/" + i.ID},
	}
	nodes := l.client.CoreV1().Nodes()
	if _, err := nodes.Create(ctx, n, metav1.CreateOptions{}); err != nil {
		return err
	}
	// The admission plugin has made it not-ready.
	if _, err := nodes.Patch(ctx, n.Name, types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{}); err != nil {
		return err
	}
	status, err := json.Marshal(corev1.Node{Status: corev1.NodeStatus{Capacity: amount, Allocatable: amount,
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now}}}})
	if err != nil {
		return err
	}
	if _, err := nodes.Patch(ctx, n.Name, types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		return err
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: i.PrivateDNS, Namespace: "kube-node-lease"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &i.PrivateDNS, LeaseDurationSeconds: new(int32(40)), RenewTime: new(metav1.NowMicro())}}
	_, err = l.client.CoordinationV1().Leases("kube-node-lease").Create(ctx, lease, metav1.CreateOptions{})
	return err
}

// pod makes one pod of one of 30 ReplicaSets on a node: together they fill nine tenths of it.
func (l *load) pod(ctx context.Context, node int) error {
	l.mu.Lock()
	l.last++
	serial := l.last
	l.mu.Unlock()
	owner := fmt.Sprintf("rs-%02d", serial%30)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%06d", owner, serial), Namespace: "default", Labels: map[string]string{"app": owner},
			Annotations:     map[string]string{"bench/padding": padding},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner, UID: types.UID("00000000-0000-0000-0000-0000000000" + owner[3:]), Controller: new(true)}}},
		Spec: corev1.PodSpec{NodeName: l.nodes[node], AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{container(int64(14400/l.pods), int64(57600/l.pods))}},
	}
	if _, err := l.client.CoreV1().Pods("default").Create(ctx, p, metav1.CreateOptions{}); err != nil {
		return err
	}
	l.mu.Lock()
	l.live = append(l.live, p.Name)
	l.mu.Unlock()
	return nil
}

func container(milli, mib int64) corev1.Container {
	return corev1.Container{Name: "c", Image: "registry.k8s.io/pause:3.10", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		"cpu": *resource.NewMilliQuantity(milli, resource.DecimalSI), "memory": *resource.NewQuantity(mib<<20, resource.BinarySI)}}}
}

// beat renews every Lease once in ten seconds, as kubelets do, until ctx ends.
func (l *load) beat(ctx context.Context) {
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	for {
		_ = each(ctx, len(l.nodes), func(ctx context.Context, n int) error {
			patch := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
			_, _ = l.client.CoordinationV1().Leases("kube-node-lease").Patch(ctx, l.nodes[n], types.MergePatchType, patch, metav1.PatchOptions{})
			return ctx.Err()
		})
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// churn replaces pods until ctx ends, and tells how many.
func (l *load) churn(ctx context.Context, perSecond int) int {
	ticker := time.NewTicker(time.Second / time.Duration(perSecond))
	defer ticker.Stop()
	var g errgroup.Group
	g.SetLimit(64)
	var replaced atomic.Int64
	for n := 0; ctx.Err() == nil; n++ {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			g.Go(func() error {
				if l.replace(ctx, n%len(l.nodes)) == nil {
					replaced.Add(1)
				}
				return nil // an API server that is too slow shows in the count
			})
		}
	}
	_ = g.Wait() // every goroutine returns nil
	return int(replaced.Load())
}

// replace deletes the oldest pod and makes one on a node.
func (l *load) replace(ctx context.Context, node int) error {
	l.mu.Lock()
	oldest := l.live[0]
	l.live = l.live[1:]
	l.mu.Unlock()
	if err := l.client.CoreV1().Pods("default").Delete(ctx, oldest, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		return err
	}
	return l.pod(ctx, node)
}

// burstSets is how many ReplicaSets a burst is of.
const burstSets = 10

func burstName(i int) string { return fmt.Sprintf("burst-%d", i) }

// burst makes ReplicaSets whose pods fit no node; their controller makes the pods.
func (l *load) burst(ctx context.Context, pods int) error {
	return each(ctx, burstSets, func(ctx context.Context, i int) error {
		name := burstName(i)
		labels := map[string]string{"app": name}
		_, err := l.client.AppsV1().ReplicaSets("default").Create(ctx, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32(pods / burstSets)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				AutomountServiceAccountToken: new(false), Containers: []corev1.Container{container(int64(2000+100*i), int64(4096+256*i))}}}}}, metav1.CreateOptions{})
		return err
	})
}

// made reports whether the controller manager has made all pods of the burst.
func (l *load) made(ctx context.Context, pods int) bool {
	list, err := l.client.AppsV1().ReplicaSets("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return false
	}
	n := 0
	for _, rs := range list.Items {
		n += int(rs.Status.Replicas)
	}
	return n >= pods/burstSets*burstSets
}

// judged reports whether kube-scheduler has tried a pod of each ReplicaSet of the burst. It reads
// the pods of all nodes, so it looks once in two seconds.
func (l *load) judged(ctx context.Context) bool {
	for i := range burstSets {
		list, err := l.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + burstName(i), ResourceVersion: "0"})
		if err != nil || !slices.ContainsFunc(list.Items, tried) {
			_ = pause(ctx, 2*time.Second) // the caller sees that ctx ended
			return false
		}
	}
	return true
}

// tried reports whether kube-scheduler has judged a pod.
func tried(p corev1.Pod) bool {
	return p.Spec.NodeName != "" || slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
}
