package apiserver

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Used is what the pods of a namespace take of a quota: their number, and what their containers request. Scopes and limits are left out.
func Used(q *corev1.ResourceQuota, pods []*corev1.Pod) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name := range q.Spec.Hard {
		used := resource.Quantity{}
		for _, p := range pods {
			if p.Namespace != q.Namespace || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
				continue
			}
			if name == corev1.ResourcePods || name == "count/pods" {
				used.Add(resource.MustParse("1"))
				continue
			}
			for _, c := range p.Spec.Containers {
				used.Add(c.Resources.Requests[corev1.ResourceName(strings.TrimPrefix(string(name), "requests."))])
			}
		}
		out[name] = used
	}
	return out
}

// withinQuotas is the admission plugin ResourceQuota, for pods.
func (s *Server) withinQuotas(pod *corev1.Pod) error {
	quotas := s.collections["/resourcequotas"]
	names := quotas.keys(pod.Namespace)
	if len(names) == 0 {
		return nil
	}
	all := []*corev1.Pod{pod}
	for _, e := range s.collections["/pods"].objects {
		all = append(all, e.Object.(*corev1.Pod))
	}
	for _, name := range names {
		q := quotas.objects[name].Object.(*corev1.ResourceQuota)
		used := Used(q, all)
		for what, hard := range q.Spec.Hard {
			if is := used[what]; is.Cmp(hard) > 0 {
				return apierrors.NewForbidden(schemaOf("", "pods"), pod.Name, fmt.Errorf("exceeded quota: %s, used with it: %s=%s, limited: %s=%s", q.Name, what, is.String(), what, hard.String()))
			}
		}
	}
	return nil
}
