package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// EventSink is a record.EventSink: it writes each Event into the Event's own namespace.
// client-go's interface gives it no context; the client's own timeouts bound a call.
type EventSink struct{ Client *Client }

// Create implements record.EventSink.
func (s EventSink) Create(e *corev1.Event) (*corev1.Event, error) {
	return s.Client.Core.Events(e.Namespace).Create(context.Background(), e, metav1.CreateOptions{})
}

// Update implements record.EventSink.
func (s EventSink) Update(e *corev1.Event) (*corev1.Event, error) {
	return s.Client.Core.Events(e.Namespace).Update(context.Background(), e, metav1.UpdateOptions{})
}

// Patch implements record.EventSink.
func (s EventSink) Patch(e *corev1.Event, patch []byte) (*corev1.Event, error) {
	return s.Client.Core.Events(e.Namespace).Patch(context.Background(), e.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
}
