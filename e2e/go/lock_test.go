// Locks on keys: reentrant by lock context, contended between clients, leased, and released when their client goes.

package e2e

import (
	"errors"
	"testing"
	"time"

	"github.com/hazelcast/hazelcast-go-client/hzerrors"
)

func TestALockIsReentrantForItsContext(t *testing.T) {
	m := ownMap(t)
	owner := m.NewLockContext(ctx)
	must(t, m.Lock(owner, "k"))
	taken, err := m.TryLock(owner, "k")
	equal(t, true, taken, err)
	taken, err = m.TryLock(m.NewLockContext(ctx), "k")
	equal(t, false, taken, err)
	must(t, m.Unlock(owner, "k"))
	locked, err := m.IsLocked(ctx, "k")
	equal(t, true, locked, err)
	must(t, m.Unlock(owner, "k"))
	locked, err = m.IsLocked(ctx, "k")
	equal(t, false, locked, err)
}

func TestOnlyTheOwnerUnlocks(t *testing.T) {
	m := ownMap(t)
	owner, other := m.NewLockContext(ctx), m.NewLockContext(ctx)
	must(t, m.Lock(owner, "k"))
	if err := m.Unlock(other, "k"); !errors.Is(err, hzerrors.ErrIllegalMonitorState) {
		t.Fatalf("expected an illegal monitor state error, found %v", err)
	}
	must(t, m.ForceUnlock(ctx, "k"))
	locked, err := m.IsLocked(ctx, "k")
	equal(t, false, locked, err)
}

func TestAWriteWaitsUntilTheKeyIsFree(t *testing.T) {
	m, other := ownMap(t), ownMap(t)
	owner := m.NewLockContext(ctx)
	must(t, m.Lock(owner, "k"))
	put, err := other.TryPutWithTimeout(ctx, "k", int64(1), 50*time.Millisecond)
	equal(t, false, put, err)
	written := make(chan error)
	go func() { written <- other.Set(ctx, "k", int64(2)) }()
	must(t, m.Set(owner, "k", int64(1)))
	must(t, m.Unlock(owner, "k"))
	must(t, <-written)
	found, err := m.Get(ctx, "k")
	equal(t, int64(2), found, err)
}

func TestALeasedLockEndsByItself(t *testing.T) {
	m, other := ownMap(t), ownMap(t)
	must(t, m.LockWithLease(m.NewLockContext(ctx), "k", time.Second))
	taken, err := other.TryLockWithTimeout(other.NewLockContext(ctx), "k", time.Minute)
	equal(t, true, taken, err)
}

func TestAClientsLocksGoWithTheClient(t *testing.T) {
	m := ownMap(t)
	leaving := connect(t, clientConfig(shared.address))
	theirs := mapOf(t, leaving)
	must(t, theirs.Lock(theirs.NewLockContext(ctx), "k"))
	must(t, leaving.Shutdown(ctx))
	taken, err := m.TryLockWithTimeout(m.NewLockContext(ctx), "k", time.Minute)
	equal(t, true, taken, err)
}
