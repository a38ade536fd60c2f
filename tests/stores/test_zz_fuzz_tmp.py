from __future__ import annotations
import msgspec, pytest
from dataclasses import replace
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from proxy.memory.archive import Details, Edited, Revision
from proxy.memory.erasure import Subject
from proxy.memory.model import SessionKey
from tests.stores.test_machine import *
from tests.stores.conftest import *
from tests.support.archives import take_out, lines, exchanges
from tests.support.commits import card

DET = st.builds(Details, title=st.sampled_from([None,"t","\u2603"]), metadata=st.sampled_from([b"{}",b'{"a":1}']), ttl=st.sampled_from([0,10**8]), system=st.sampled_from([None,b"[1]",b"[2]"]), system_tokens=st.integers(0,3))

class Fuzz(Comparison):
    @rule(n=st.integers(0,1), data=st.data(), removed=SOME_MESSAGES, superseded=SOME_MESSAGES, activated=SOME_MESSAGES, details=st.none()|DET, usewas=st.booleans(), good=st.booleans(), ed=st.lists(st.tuples(MESSAGES, st.integers(0,9), st.sampled_from([None,b"nw"]), st.integers(0,1)),max_size=2, unique_by=lambda x:x[0]))
    def revise(self, n, data, removed, superseded, activated, details, usewas, good, ed):
        key = self.keys[n]
        s = self.wait(self.oracle.session(key))
        edits=[]
        for mid, tokens, wire, choice in ed:
            line = self.wait(self.oracle.message(key, mid))
            if line is None and good: continue
            was = (line.wire if line and line.wire is not None else line.body if line else b"?")
            if not good: was += b"x"
            ex,_,ix = mid.rpartition(".")
            edits.append(Edited(card=card(ex,int(ix),"assistant",tokens=tokens,choice=choice), body=b"nb", wire=wire, was=was))
        was = s.details if s and usewas else None
        if was and not good: was = replace(was, title="nope")
        r = Revision(edited=tuple(edits), removed=removed, superseded=superseded, activated=activated, details=details, was=was)
        e = self.wait(self.oracle.revise(key, r))
        assert self.wait(self.store.revise(key, r)) == e
        self.compare(key)

    @rule(n=st.integers(0,1), user=st.sampled_from([None,"kai","eve"]), until=st.sampled_from([999.0,1000.0,1000.5,1001.0]), un=st.booleans())
    def mark(self, n, user, until, un):
        sub = Subject(self.tenant, user) if user else Subject(self.tenant, session=self.keys[n].session)
        for s in (self.oracle, self.store):
            self.wait(s.unmark(sub) if un else s.mark(sub, until))

    @rule(n=st.integers(0,1), swap=st.booleans(), drop=st.booleans())
    def restore(self, n, swap, drop):
        key=self.keys[n]
        if self.wait(self.oracle.session(key)) is None: return
        a = self.wait(take_out(self.oracle, key)); b = self.wait(take_out(self.store, key))
        assert a == b, (a,b)
        to = self.keys[1-n] if swap else key
        if drop:
            for s in (self.oracle,self.store): self.wait(s.delete(to))
        e = self.wait(self.oracle.restore(to, a))
        assert self.wait(self.store.restore(to, b)) == e
        self.compare(to)

    @rule(n=st.integers(0,1), limit=st.integers(1,3), before=st.none()|st.integers(1,20), mid=MESSAGES, after=st.integers(0,20))
    def pages(self, n, limit, before, mid, after):
        key=self.keys[n]
        for name,args in (("exchanges",(before,limit)),("lines",(after,limit)),("message",(mid,))):
            e=self.wait(getattr(self.oracle,name)(key,*args)); g=self.wait(getattr(self.store,name)(key,*args))
            assert e==g,(name,e,g)

    def compare(self,key):
        super().compare(key)
        assert self.wait(lines(self.store,key))==self.wait(lines(self.oracle,key))
        assert self.wait(exchanges(self.store,key))==self.wait(exchanges(self.oracle,key))

@pytest.mark.timeout(400)
@pytest.mark.parametrize("url", ["redis","redis-cluster"], indirect=True)
def test_fuzz(url):
    class M(Fuzz):
        def __init__(self): super().__init__(url)
    run_state_machine_as_test(M, settings=settings(max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck), database=None))
