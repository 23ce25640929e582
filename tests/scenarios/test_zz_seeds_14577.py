import os, sys, traceback, time, collections
sys.path.insert(0, os.getcwd())
from tests.scenarios import test_any_sequence as t
def test_seeds(new_database):
    a, b = map(int, os.environ["SEEDS"].split("-"))
    world = t.Simulator(new_database()); bad = []; start=time.time(); n=0
    kinds=collections.Counter()
    for seed in range(a, b):
        n+=1
        try: t.live(world, seed)
        except BaseException as e:
            if isinstance(e, KeyboardInterrupt): raise
            tb = traceback.extract_tb(e.__traceback__)
            places=[f"{os.path.basename(f.filename)}:{f.lineno}:{f.name}" for f in tb if '/tests/' in f.filename or '/orchestrator/' in f.filename]
            line=f"{seed} {type(e).__name__} {str(e)[:300]!r} {getattr(e,'__notes__','')} {places[-3:]}"
            print("BAD", line, file=sys.stderr, flush=True)
            bad.append(seed)
    world.close()
    print("RAN", n, "in", round(time.time()-start), "bad", bad, file=sys.stderr, flush=True)
