package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// admissionDelay is how old the API server's view of admission policies and webhooks may be: it
// looks at them once in a second and tells nobody when it has.
const admissionDelay = 3 * time.Second

// create makes an object; a field that its kind does not have is refused by name.
func (s *scene) create(ctx context.Context, o unstructured.Unstructured) error {
	api, err := s.t.resource(&o)
	if err != nil {
		return err
	}
	if _, err := api.Create(ctx, &o, metav1.CreateOptions{FieldValidation: "Strict"}); err != nil {
		return fmt.Errorf("make %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	if status, ok := o.Object["status"]; ok { // a subresource drops it from a new object, which a controller may have changed since
		patch, err := json.Marshal(map[string]any{"status": status})
		if err != nil {
			return err
		}
		if _, err := api.Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			return fmt.Errorf("the status of %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	s.created = append(s.created, o)
	if o.GroupVersionKind().Group == "admissionregistration.k8s.io" {
		time.Sleep(admissionDelay)
	}
	return nil
}

// find is the client of what a step names: "deployment web", "pod web", "node 0".
func (s *scene) find(ctx context.Context, what string) (dynamic.ResourceInterface, string, error) {
	kind, name, ok := strings.Cut(what, " ")
	if !ok {
		return nil, "", fmt.Errorf("%q: write KIND NAME", what)
	}
	switch kind = strings.ToLower(kind); kind {
	case "node":
		name, err := s.nodeName(ctx, name)
		return s.t.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}), name, err
	case "pod":
		pod, err := s.pod(ctx, name)
		if err != nil {
			return nil, "", err
		}
		return s.t.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(pod.Namespace), pod.Name, nil
	}
	for _, o := range s.created {
		if strings.ToLower(o.GetKind()) == kind && o.GetName() == name {
			api, err := s.t.resource(&o)
			return api, name, err
		}
	}
	return nil, "", fmt.Errorf("%q: the case has made no such object", what)
}

// nodeName is the name of a Node by its number, or by a pod: "of web".
func (s *scene) nodeName(ctx context.Context, which string) (string, error) {
	if prefix, ok := strings.CutPrefix(which, "of "); ok {
		pods, err := s.pods(ctx)
		if err != nil {
			return "", err
		}
		for _, p := range pods {
			if strings.HasPrefix(p.Name, prefix) && p.Spec.NodeName != "" {
				return p.Spec.NodeName, nil
			}
		}
		return "", fmt.Errorf("no pod %s is bound", prefix)
	}
	n, err := strconv.Atoi(which)
	if err != nil || n < 0 || n >= len(s.nodes) {
		return "", fmt.Errorf("there is no node %s; the case has %d, from 0", which, len(s.nodes))
	}
	return s.nodes[n], nil
}

// pod is the first pod whose name begins with a prefix: one that waits before one that is bound.
func (s *scene) pod(ctx context.Context, prefix string) (corev1.Pod, error) {
	pods, err := s.pods(ctx)
	if err != nil {
		return corev1.Pod{}, err
	}
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !strings.HasPrefix(p.Name, prefix) })
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int {
		return waits(b) - waits(a)
	})
	if len(pods) == 0 {
		return corev1.Pod{}, fmt.Errorf("there is no pod %s", prefix)
	}
	return pods[0], nil
}

func waits(p corev1.Pod) int {
	if p.Spec.NodeName == "" {
		return 1
	}
	return 0
}

// pods are all pods by name, less those that are going.
func (s *scene) pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := s.t.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }), nil
}

// step plays one step.
func (s *scene) step(ctx context.Context, st Step) error {
	if st.After.Duration > 0 {
		select {
		case <-time.After(st.After.Duration):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for _, body := range st.Apply {
		o := Object{Body: unstructured.Unstructured{Object: body}}
		if err := o.complete(); err != nil {
			return err
		}
		if err := s.create(ctx, o.Body); err != nil {
			return err
		}
	}
	for _, p := range st.Patch {
		if err := s.patch(ctx, p); err != nil {
			return err
		}
	}
	for _, what := range st.Delete {
		api, name, err := s.find(ctx, what)
		switch {
		case err != nil:
		case strings.HasPrefix(what, "node "):
			err = s.end(ctx, name)
		default:
			err = api.Delete(ctx, name, metav1.DeleteOptions{})
		}
		if err != nil {
			return fmt.Errorf("delete %s: %w", what, err)
		}
	}
	for _, n := range st.Join {
		if err := s.joinOne(ctx, n); err != nil {
			return err
		}
	}
	return s.settle(ctx)
}

func (s *scene) patch(ctx context.Context, p Patch) error {
	api, name, err := s.find(ctx, p.What)
	if err != nil {
		return fmt.Errorf("patch %s: %w", p.What, err)
	}
	body, err := json.Marshal(p.With)
	if err != nil {
		return fmt.Errorf("patch %s: %w", p.What, err)
	}
	if _, err := api.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldValidation: "Strict"}); err != nil {
		return fmt.Errorf("patch %s: %w", p.What, err)
	}
	return nil
}

// joinOne raises a group's desired capacity by one and makes the machine's Node.
func (s *scene) joinOne(ctx context.Context, n Node) error {
	free := s.waiting(n.Group)
	if len(free) == 0 {
		g, ok := s.cloud.Group(n.Group)
		if !ok {
			return fmt.Errorf("join: there is no group %q", n.Group)
		}
		if err := s.resize(ctx, n.Group, g.Desired+1); err != nil {
			return fmt.Errorf("join: %w", err)
		}
		free = s.waiting(n.Group)
	}
	if err := s.join(ctx, n, free[0], true); err != nil {
		return err
	}
	return s.becomeReady(ctx)
}

// clear deletes all that a case has made, and waits until it is gone.
func (s *scene) clear(ctx context.Context) error {
	var errs []error
	background := metav1.DeletePropagationBackground
	for _, o := range slices.Backward(s.created) {
		api, err := s.t.resource(&o)
		if err == nil {
			err = api.Delete(ctx, o.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
		}
		errs = append(errs, ignoreNotFound(err))
	}
	nodes := s.t.client.CoreV1().Nodes()
	errs = append(errs, nodes.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		s.t.client.StorageV1().CSINodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	return errors.Join(append(errs, s.t.poll(ctx, "the case's objects to go", func() (bool, error) {
		now := int64(0)
		pods, err := s.t.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, p := range pods.Items { // the controller may make pods until it has seen that it is gone
			if err := ignoreNotFound(s.t.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})); err != nil {
				return false, err
			}
		}
		list, err := nodes.List(ctx, metav1.ListOptions{})
		if err != nil || len(pods.Items)+len(list.Items) > 0 {
			return false, err
		}
		for _, o := range s.created {
			api, err := s.t.resource(&o)
			if meta.IsNoMatchError(err) {
				continue
			}
			if err != nil {
				return false, err
			}
			if _, err := api.Get(ctx, o.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return false, err
			}
		}
		return true, nil
	}))...)
}
