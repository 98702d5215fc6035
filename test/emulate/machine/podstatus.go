package machine

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// running is the status of a pod whose containers have all started; again tells
// that they ran before the machine rebooted.
func (k *kubelet) running(p *podState, pod *corev1.Pod, again bool) corev1.PodStatus {
	now := seconds(time.Now())
	ip := k.podIP(p.number)
	host := k.m.cfg.Addresses[0].String()
	if pod.Spec.HostNetwork {
		ip = host
	}
	s := corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: host, HostIPs: []corev1.HostIP{{IP: host}},
		PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, StartTime: &now,
	}
	if again && pod.Status.StartTime != nil {
		s.StartTime = pod.Status.StartTime
	}
	for _, t := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, c := range pod.Spec.InitContainers {
		status := containerStatus(c, pod.Status.InitContainerStatuses, again)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			status.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
			yes := true
			status.Started = &yes
		} else {
			status.State.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}
		}
		s.InitContainerStatuses = append(s.InitContainerStatuses, status)
	}
	for _, c := range pod.Spec.Containers {
		status := containerStatus(c, pod.Status.ContainerStatuses, again)
		yes := true
		status.Started = &yes
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
		s.ContainerStatuses = append(s.ContainerStatuses, status)
	}
	return s
}

func containerStatus(c corev1.Container, before []corev1.ContainerStatus, again bool) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: c.Image, Ready: true, ContainerID: "containerd://" + newUUID()}
	for _, old := range before {
		if again && old.Name == c.Name {
			s.RestartCount = old.RestartCount + 1
		}
	}
	return s
}

// ended is the status of a pod none of whose containers runs any more.
func ended(pod *corev1.Pod, phase corev1.PodPhase, reason, message string) corev1.PodStatus {
	now := seconds(time.Now())
	s := corev1.PodStatus{Phase: phase, Reason: reason, Message: message}
	why, code := "Completed", int32(0)
	if phase == corev1.PodFailed {
		why, code = "Error", 1
	}
	for _, t := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		c := corev1.PodCondition{Type: t, Status: corev1.ConditionFalse, Reason: "PodCompleted", LastTransitionTime: now}
		if phase == corev1.PodFailed {
			c.Reason = "PodFailed"
		}
		s.Conditions = append(s.Conditions, c)
	}
	for _, c := range pod.Spec.Containers {
		status := containerStatus(c, nil, false)
		status.Ready = false
		started := now
		for _, old := range pod.Status.ContainerStatuses {
			if old.Name == c.Name {
				status.RestartCount, status.ContainerID = old.RestartCount, old.ContainerID
				if old.State.Running != nil {
					started = old.State.Running.StartedAt
				}
			}
		}
		status.State.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: why, StartedAt: started, FinishedAt: metav1.NewTime(now.Time), ContainerID: status.ContainerID}
		s.ContainerStatuses = append(s.ContainerStatuses, status)
	}
	return s
}
