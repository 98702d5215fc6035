package store

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

const noProvisioner = "kubernetes.io/no-provisioner"

func list(name corev1.ResourceName, amount string) corev1.ResourceList {
	return corev1.ResourceList{name: resource.MustParse(amount)}
}

func in(key string, values ...string) cluster.Requirement {
	return cluster.Requirement{Key: key, Operator: "In", Values: values}
}

func affinityOf(terms ...corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
}
