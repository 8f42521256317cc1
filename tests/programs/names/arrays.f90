! Arrays with known names: where one is allocated or declared, a comment says which, and its type.
module state
  implicit none
  real(kind=8), allocatable :: field(:, :)
  real(kind=8) :: fixed(200, 100) ! region: fixed real(kind=8)[200][100]
contains
  subroutine automatic(count)
    integer, intent(in) :: count
    real(kind=8) :: scratch(count) ! region: scratch real(kind=8)[]
    scratch = count
    if (sum(scratch) < 0) print *, scratch(2)
  end subroutine automatic
end module state

program arrays
  use state
  implicit none
  real(kind=4), allocatable :: local(:)
  integer(kind=8), pointer :: pointed(:)
  integer :: n
  n = 20000 + command_argument_count()
  allocate(local(n)) ! region: local real(kind=4)[]
  allocate(field(n, 4)) ! region: field real(kind=8)[][]
  allocate(pointed(n)) ! region: pointed integer(kind=8)[]
  local = 1
  field = 2
  pointed = 3
  fixed(:, 3) = local(n)
  call automatic(n)
  if (local(7) + field(3, 2) + pointed(5) + fixed(n / 400, 3) < 0) print *, local(3)
end program arrays
