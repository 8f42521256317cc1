"""Functions are called as people call them."""

import pytest

from numaplan.profiler import short_function


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("main", "main"),
        ("Join::probe", "Join::probe"),
        ("work._omp_fn.0", "work"),
        ("__grid_mod_MOD_step._omp_fn.12", "grid_mod::step"),
        ("vector<double>::operator[]", "vector<double>::operator[]"),
        ("vector<long, std::allocator<unsigned long> >::operator[]", "vector<…>::operator[]"),
        ("_Hashtable<int, std::pair<int, int>, std::less<int> >::_M_f<int>", "_Hashtable<…>::_M_f<…>"),
        ("Matrix<double, std::allocator<double> >::operator<<", "Matrix<…>::operator<<"),
        ("Pointer<Node<double, std::allocator<double> > >::operator->", "Pointer<…>::operator->"),
        ("_Invoker<std::tuple<main(int, char**)::<lambda()> > >::_M_run", "_Invoker<…>::_M_run"),
        ("._omp_fn.0", "._omp_fn.0"),
    ],
)  # fmt: skip
def test_without_what_nobody_wrote(name: str, short: str) -> None:
    assert short_function(name) == short
