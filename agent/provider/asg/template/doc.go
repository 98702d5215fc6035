// Package template resolves what the next machine of an Auto Scaling group will look like:
// capacity, allocatable, labels, taints, and the key (Spec) of all that decides them.
//
// Resolve follows a group to its launch template versions, from there to image and instance
// types (those named, or those that meet the requirements), and takes the element-wise
// minimum over all of them, since nobody knows which one AWS will start. The group's tags
// come last and win.
//
// It refuses to guess: a template that cannot be resolved is Unknown with the reason. It
// keeps only facts that do not change (types, images, numbered versions), and for a short
// while which types meet requirements and what AWS refused to describe.
package template
